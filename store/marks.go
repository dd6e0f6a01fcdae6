package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

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

// markSize is the length of a stored mark: slot (big-endian), root, and a
// checksum of key, slot and root, since bbolt has none on its pages.
const (
	markBodySize = 8 + 32
	checksumSize = 8
	markSize     = markBodySize + checksumSize
)

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
		err = m.update(func(tx *bolt.Tx) error { return reserve(tx.Bucket(marksBucket), tx.Bucket(metaBucket), marks, errs) })
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

// update runs a transaction. bbolt panics on pages that were damaged after they
// were checked; that refuses the batch like any other failure.
func (m *Marks) update(f func(*bolt.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &CorruptError{Path: m.db.Path(), Err: fmt.Errorf("%v", p)}
		}
	}()

	return m.db.Update(f)
}

// reserve compares and writes the marks and fills errs.
func reserve(bucket, meta *bolt.Bucket, marks []Mark, errs []error) error {
	sum, err := parseSummary(meta.Get(summaryKey))
	if err != nil {
		return err
	}
	changed := false
	for i := range marks {
		mark := &marks[i]
		if stored := bucket.Get(mark.Key[:]); stored != nil {
			last, err := parseMark(mark.Key[:], stored)
			if err != nil {
				return err
			}
			if errs[i] = last.allows(mark); errs[i] != nil || last == *mark {
				continue
			}
			sum.remove(stored)
		}
		value := mark.value()
		if err := bucket.Put(mark.Key[:], value); err != nil {
			return err
		}
		sum.add(value)
		changed = true
	}
	if !changed {
		return errUnchanged
	}

	return meta.Put(summaryKey, sum.value())
}

// allows returns why next may not follow m on the same key, nil if it may.
func (m *Mark) allows(next *Mark) error {
	switch {
	case m.Slot > next.Slot:
		return fmt.Errorf("%w (slot %d, last %d)", ErrBelowMark, next.Slot, m.Slot)
	case m.Slot == next.Slot && m.Root != next.Root:
		return fmt.Errorf("%w (slot %d)", ErrAlreadySigned, next.Slot)
	}

	return nil
}

// summary is about all marks together, so that a damaged page that hides marks,
// or shows those of an older transaction, is noticed.
type summary struct {
	count uint64
	total uint64 // of the checksums of all marks, modulo 2^64
}

// summarySize is the length of a stored summary: count and total, big-endian.
const summarySize = 8 + 8

// add and remove change the summary by one stored mark, which has its length.
func (s *summary) add(value []byte)    { s.count++; s.total += sumOf(value) }
func (s *summary) remove(value []byte) { s.count--; s.total -= sumOf(value) }

// sumOf returns the checksum in a stored mark.
func sumOf(value []byte) uint64 {
	if len(value) != markSize {
		return 0 // refused by parseMark
	}

	return binary.BigEndian.Uint64(value[markBodySize:])
}

// value returns the stored form.
func (s *summary) value() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.count), s.total)
}

// parseSummary reads a stored summary.
func parseSummary(b []byte) (s summary, err error) {
	if len(b) != summarySize {
		return summary{}, fmt.Errorf("summary of %d bytes, must be %d", len(b), summarySize)
	}

	return summary{count: binary.BigEndian.Uint64(b), total: binary.BigEndian.Uint64(b[8:])}, nil
}

// value returns the stored form, fresh because bbolt keeps it until the commit.
func (m *Mark) value() []byte {
	v := make([]byte, 0, markSize)
	v = binary.BigEndian.AppendUint64(v, m.Slot)
	v = append(v, m.Root[:]...)

	return binary.BigEndian.AppendUint64(v, checksum(m.Key[:], v))
}

// checksum returns the first eight bytes of the SHA-256 of key and body.
func checksum(key, body []byte) uint64 {
	h := sha256.New()
	h.Write(key)
	h.Write(body)

	return binary.BigEndian.Uint64(h.Sum(nil))
}

// parseMark reads a stored mark.
func parseMark(key, value []byte) (m Mark, err error) {
	if len(key) != len(m.Key) || len(value) != markSize {
		return Mark{}, fmt.Errorf("mark of %d and %d bytes, must be %d and %d", len(key), len(value), len(m.Key), markSize)
	}
	if binary.BigEndian.Uint64(value[markBodySize:]) != checksum(key, value[:markBodySize]) {
		return Mark{}, fmt.Errorf("mark of key %x has a wrong checksum", key[:4])
	}
	copy(m.Key[:], key)
	m.Slot = binary.BigEndian.Uint64(value)
	copy(m.Root[:], value[8:])

	return m, nil
}
