package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Names in the data directory.
const (
	journalName = "journal.db"
	journalTemp = "journal.db.new" // a journal that is being made
	lockName    = "aggnode.lock"
)

// Content of the journal.
const formatVersion = 1

var (
	metaBucket  = []byte("meta")
	marksBucket = []byte("marks")
	versionKey  = []byte("version")
	summaryKey  = []byte("summary")
)

// lockTimeout is how long to wait for bbolt's own lock on the file. Ours on the
// directory is held by then, so any wait means that a foreign program reads it.
const lockTimeout = time.Second

// ErrClosed is returned after Close.
var ErrClosed = errors.New("journal is closed")

// Store is an open data directory. Safe for concurrent use.
type Store struct {
	dir  string
	lock *os.File
	db   *bolt.DB
}

// Open locks the data directory, makes it when it is missing (mode 0700), and
// opens its journal. Errors: [LockedError] when another process has the
// directory, [CorruptError] when the journal is damaged. The whole file is
// checked, which takes about a millisecond for a thousand keys.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	db, err := openJournal(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}

	return &Store{dir: dir, lock: lock, db: db}, nil
}

// Close closes the journal and unlocks the directory. It waits for a Reserve
// that runs; later ones fail with ErrClosed.
func (s *Store) Close() error {
	return errors.Join(s.db.Close(), s.lock.Close())
}

// Marks returns the signing marks of the journal.
func (s *Store) Marks() *Marks { return &Marks{db: s.db} }

// CorruptError says that a journal is damaged and that the node must not sign
// with the keys it was for.
type CorruptError struct {
	Path string
	Err  error
}

// Error names the file and what can be done.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s is damaged (%v): restore it from a copy that is not older than the last signature, or give up the keys that signed with it", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// openJournal opens the journal and makes it when there is none.
func openJournal(dir string) (*bolt.DB, error) {
	path := filepath.Join(dir, journalName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := createJournal(dir); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("open journal: %w", err)
	case info.Size() == 0: // bbolt would take it for a new file
		return nil, &CorruptError{Path: path, Err: errors.New("empty file")}
	}

	return openChecked(path)
}

// createJournal makes an empty journal under another name and renames it, so
// that the name never stands for half a file. All of it is on disk at the end.
func createJournal(dir string) error {
	temp := filepath.Join(dir, journalTemp)
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove unfinished journal: %w", err)
	}
	db, err := bolt.Open(temp, 0o600, &bolt.Options{Timeout: lockTimeout})
	if err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket(marksBucket); err != nil {
			return err
		}
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}

		return errors.Join(meta.Put(versionKey, []byte{formatVersion}), meta.Put(summaryKey, (&summary{}).value()))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, journalName)); err != nil {
		return fmt.Errorf("make journal: %w", err)
	}

	return syncDir(dir)
}

// openChecked opens an existing journal and reads all of it.
func openChecked(path string) (db *bolt.DB, err error) {
	// A file that was cut short faults when its mapping is read; turn that into
	// a panic of this goroutine, and a panic on a damaged page into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &CorruptError{Path: path, Err: fmt.Errorf("%v", p)}
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("open journal %s: another program has it open", path)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("open journal: %w", err)
	case err != nil:
		return nil, &CorruptError{Path: path, Err: err}
	}
	if err := db.View(func(tx *bolt.Tx) error { return check(tx, path) }); err != nil {
		return nil, &CorruptError{Path: path, Err: errors.Join(err, db.Close())}
	}

	return db, nil
}

// check reads every mark. bbolt's own Tx.Check is not used: it works on a
// goroutine of its own, where a damaged page would end the process.
func check(tx *bolt.Tx, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("file of %d bytes, its content needs %d", info.Size(), tx.Size())
	}
	meta, marks := tx.Bucket(metaBucket), tx.Bucket(marksBucket)
	if meta == nil || marks == nil {
		return errors.New("not a journal of this program")
	}
	if v := meta.Get(versionKey); len(v) != 1 || v[0] != formatVersion {
		return fmt.Errorf("format version %v, this program knows %d", v, formatVersion)
	}

	want, err := parseSummary(meta.Get(summaryKey))
	if err != nil {
		return err
	}
	var have summary
	if err := marks.ForEach(func(key, value []byte) error {
		have.add(value)
		if !bytes.Equal(marks.Get(key), value) { // a damaged branch page hides it
			return fmt.Errorf("mark of key %x is not found", key)
		}
		_, err := parseMark(key, value)

		return err
	}); err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("marks are missing or old: %d of %d, or others than recorded", have.count, want.count)
	}

	return nil
}

// syncDir makes a rename in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}

	return nil
}
