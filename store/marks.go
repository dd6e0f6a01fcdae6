package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Errors of one mark of a batch.
var (
	// ErrAlreadySigned: the key was used at this slot for another root.
	ErrAlreadySigned = errors.New("key has already signed another root at this slot")
	// ErrBelowMark: the key was used at a later slot.
	ErrBelowMark = errors.New("key has already signed at a later slot")
)

// Mark is one use of a one-time key: at this slot it signs this root.
type Mark struct {
	Key  [32]byte // public key
	Slot uint64
	Root [32]byte
}

// markSize is the length of a stored mark: slot (big-endian), root, and a CRC of
// key, slot and root, since bbolt has no check on its pages.
const (
	markBodySize = 8 + 32
	markSize     = markBodySize + 4
)

// castagnoli is the table of the CRC. Never written.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errUnchanged ends a transaction that has nothing to write, without an fsync.
var errUnchanged = errors.New("nothing to write")

// Marks are the signing marks of a journal. Safe for concurrent use.
type Marks struct{ db *bolt.DB }

// Reserve records the uses of keys, all in one transaction, and returns once
// they are on disk: an error for each mark, nil where the key may sign. A mark
// is refused with ErrAlreadySigned or ErrBelowMark; then nothing changes for its
// key. The same mark may be reserved again. When the transaction fails, or ctx
// has ended before it, all marks have that error. It costs one fsync, which is 1
// to 30 ms on common disks.
func (m *Marks) Reserve(ctx context.Context, marks []Mark) []error {
	errs := make([]error, len(marks))
	if len(marks) == 0 {
		return errs
	}
	err := ctx.Err()
	if err == nil {
		err = m.db.Update(func(tx *bolt.Tx) error { return reserve(tx.Bucket(marksBucket), marks, errs) })
	}
	switch {
	case err == nil || errors.Is(err, errUnchanged):
		return errs
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		err = ErrClosed
	}
	for i := range errs {
		errs[i] = fmt.Errorf("reserve signing position: %w", err)
	}

	return errs
}

// reserve compares and writes the marks and fills errs.
func reserve(bucket *bolt.Bucket, marks []Mark, errs []error) error {
	changed := false
	for i := range marks {
		mark := &marks[i]
		if stored := bucket.Get(mark.Key[:]); stored != nil {
			last, err := parseMark(mark.Key[:], stored)
			if err != nil {
				return err
			}
			if last == *mark {
				continue
			}
			switch {
			case last.Slot == mark.Slot:
				errs[i] = fmt.Errorf("%w (slot %d)", ErrAlreadySigned, mark.Slot)
			case last.Slot > mark.Slot:
				errs[i] = fmt.Errorf("%w (slot %d, last %d)", ErrBelowMark, mark.Slot, last.Slot)
			}
			if errs[i] != nil {
				continue
			}
		}
		if err := bucket.Put(mark.Key[:], mark.value()); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return errUnchanged
	}

	return nil
}

// value returns the stored form, fresh because bbolt keeps it until the commit.
func (m *Mark) value() []byte {
	v := make([]byte, 0, markSize)
	v = binary.BigEndian.AppendUint64(v, m.Slot)
	v = append(v, m.Root[:]...)

	return binary.BigEndian.AppendUint32(v, checksum(m.Key[:], v))
}

// checksum returns the CRC of key and body.
func checksum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
}

// parseMark reads a stored mark.
func parseMark(key, value []byte) (m Mark, err error) {
	if len(key) != len(m.Key) || len(value) != markSize {
		return Mark{}, fmt.Errorf("mark of %d and %d bytes, must be %d and %d", len(key), len(value), len(m.Key), markSize)
	}
	if binary.BigEndian.Uint32(value[markBodySize:]) != checksum(key, value[:markBodySize]) {
		return Mark{}, fmt.Errorf("mark of key %x has a wrong checksum", key[:4])
	}
	copy(m.Key[:], key)
	m.Slot = binary.BigEndian.Uint64(value)
	copy(m.Root[:], value[8:])

	return m, nil
}
