package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// Environment of the child processes of these tests.
const (
	childMode = "AGGNODE_STORE_TEST_CHILD"
	childDir  = "AGGNODE_STORE_TEST_DIR"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		child(mode, os.Getenv(childDir))
	}
	os.Exit(m.Run())
}

// child is another process: it opens the directory and reserves slots, saying so
// on its output, until it is killed.
func child(mode, dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(3)
	}
	fmt.Println("open")
	if mode == "hold" {
		select {}
	}
	for slot := uint64(1); ; slot++ {
		for i, err := range s.Marks().Reserve(context.Background(), batch(slot, "first", 8)) {
			if err != nil {
				fmt.Println("error:", i, err)
				os.Exit(4)
			}
		}
		fmt.Println(slot)
	}
}

// batch is a mark for each of n keys.
func batch(slot uint64, content string, n int) []Mark {
	marks := make([]Mark, n)
	for i := range marks {
		marks[i] = Mark{Key: key(i), Slot: slot, Root: root(fmt.Sprint(content, slot))}
	}

	return marks
}

func key(i int) (k [32]byte) {
	binary.BigEndian.PutUint64(k[:], uint64(i))

	return k
}

func root(content string) [32]byte { return sha256.Sum256([]byte(content)) }

// startChild starts another process on the directory and returns its lines.
func startChild(t *testing.T, mode, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "open", lines.Text())

	return cmd, lines
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })

	return s
}

func TestReserve(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir()).Marks()
	one := func(k int, slot uint64, content string) error {
		return m.Reserve(t.Context(), []Mark{{Key: key(k), Slot: slot, Root: root(content)}})[0]
	}
	require.NoError(t, one(1, 100, "a"))
	require.NoError(t, one(1, 100, "a"), "the same again")
	require.ErrorIs(t, one(1, 100, "b"), ErrAlreadySigned)
	require.ErrorIs(t, one(1, 99, "a"), ErrBelowMark)
	require.ErrorIs(t, one(1, 0, "a"), ErrBelowMark)
	require.NoError(t, one(1, 100, "a"), "refusals change nothing")
	require.NoError(t, one(2, 99, "a"), "another key")
	require.NoError(t, one(1, 101, "b"))
	require.ErrorIs(t, one(1, 100, "a"), ErrBelowMark, "even the same content")
	require.NoError(t, one(3, 0, "a"), "slot 0")
	require.ErrorIs(t, one(3, 0, "b"), ErrAlreadySigned)
	require.NoError(t, one(1, 1<<64-1, "c"))
	require.ErrorIs(t, one(1, 1<<63, "c"), ErrBelowMark)
	require.Empty(t, m.Reserve(t.Context(), nil))
}

func TestBatchHasOneAnswerAKey(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir()).Marks()
	require.NoError(t, errors.Join(m.Reserve(t.Context(), batch(5, "x", 2))...))
	errs := m.Reserve(t.Context(), []Mark{
		{Key: key(0), Slot: 5, Root: root("other")},
		{Key: key(1), Slot: 6, Root: root("y")},
		{Key: key(2), Slot: 6, Root: root("y")},
		{Key: key(0), Slot: 4, Root: root("y")},
		{Key: key(2), Slot: 6, Root: root("z")}, // the same key again in one batch
		{Key: key(2), Slot: 6, Root: root("y")},
	})
	require.ErrorIs(t, errs[0], ErrAlreadySigned)
	require.NoError(t, errs[1])
	require.NoError(t, errs[2])
	require.ErrorIs(t, errs[3], ErrBelowMark)
	require.ErrorIs(t, errs[4], ErrAlreadySigned)
	require.NoError(t, errs[5])
}

func TestConcurrentReservesNeverLetTwoRootsThrough(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir()).Marks()
	const rivals = 8
	var mu sync.Mutex
	granted := map[uint64][]string{}
	var wg sync.WaitGroup
	for r := range rivals {
		wg.Go(func() {
			for slot := uint64(1); slot <= 10; slot++ {
				content := fmt.Sprint(r)
				err := m.Reserve(t.Context(), []Mark{{Key: key(0), Slot: slot, Root: root(content)}})[0]
				if err == nil {
					mu.Lock()
					granted[slot] = append(granted[slot], content)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, granted[10])
	for slot, contents := range granted {
		require.Len(t, contents, 1, "slot %d", slot)
	}
}

func TestReserveThatCanNotBeDurableRefusesAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Marks().Reserve(ctx, batch(1, "x", 3)) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.Close())
	for _, err := range s.Marks().Reserve(t.Context(), batch(1, "x", 3)) {
		require.ErrorIs(t, err, ErrClosed)
	}
	s = open(t, dir)
	for _, err := range s.Marks().Reserve(t.Context(), batch(1, "y", 3)) {
		require.NoError(t, err, "nothing was recorded before")
	}
}

func TestMarksOutliveTheStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.Marks().Reserve(t.Context(), batch(7, "x", 300))...))
	require.NoError(t, s.Close())
	info, err := os.Stat(filepath.Join(dir, journalName))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)

	s = open(t, dir)
	for _, err := range s.Marks().Reserve(t.Context(), batch(7, "y", 300)) {
		require.ErrorIs(t, err, ErrAlreadySigned)
	}
	require.NoError(t, errors.Join(s.Marks().Reserve(t.Context(), batch(7, "x", 300))...))
}

// A process is killed (SIGKILL) as soon as it has said that a batch is reserved,
// and while it works on the next ones: what it said holds.
func TestReservedMarksSurviveKill(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		dir := t.TempDir()
		cmd, lines := startChild(t, "reserve", dir)
		said := uint64(0)
		for said <= uint64(round) && lines.Scan() {
			slot, err := strconv.ParseUint(lines.Text(), 10, 64)
			require.NoError(t, err, lines.Text())
			said = slot
		}
		require.Positive(t, said)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()

		m := open(t, dir).Marks() // the lock went with the process
		for _, err := range m.Reserve(t.Context(), batch(said, "other", 8)) {
			require.Error(t, err)
			require.True(t, errors.Is(err, ErrAlreadySigned) || errors.Is(err, ErrBelowMark), err.Error())
		}
		for _, err := range m.Reserve(t.Context(), batch(said+1000, "other", 8)) {
			require.NoError(t, err, "later slots are free")
		}
	}
}

func TestDirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _ := startChild(t, "hold", dir)
	_, err := Open(dir)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, cmd.Process.Pid, locked.PID)
	require.Contains(t, err.Error(), strconv.Itoa(cmd.Process.Pid))
	require.Contains(t, err.Error(), dir)
	require.Contains(t, err.Error(), "--data-dir")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s := open(t, dir)
	_, err = Open(dir)
	require.ErrorAs(t, err, &locked, "also within one process")
	require.Equal(t, os.Getpid(), locked.PID)
	require.NoError(t, s.Close())
	open(t, dir)
}

func TestUnreadableLockFileNamesNobody(t *testing.T) {
	t.Parallel()
	for content, pid := range map[string]int{"": 0, "x\n": 0, "12\n": 12, strings.Repeat("9", 40): 0} {
		require.Equal(t, pid, readPID(strings.NewReader(content)), content)
	}
}

// journalOf makes a journal with marks and returns its bytes.
func journalOf(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir)
	require.NoError(t, err)
	for slot := uint64(1); slot <= 3; slot++ {
		require.NoError(t, errors.Join(s.Marks().Reserve(t.Context(), batch(slot, "x", 200))...))
	}
	require.NoError(t, s.Close())
	b, err := os.ReadFile(filepath.Join(dir, journalName))
	require.NoError(t, err)

	return b
}

// reopen opens a journal of these bytes. It must end in a store or in an error
// that names the file, never in a crash.
func reopen(t *testing.T, b []byte) (*Store, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, journalName), b, 0o600))
	s, err := Open(dir)
	if err != nil {
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Contains(t, err.Error(), filepath.Join(dir, journalName))

		return nil, err
	}
	t.Cleanup(func() { _ = s.Close() })

	return s, nil
}

func TestDamagedJournalIsRefused(t *testing.T) {
	t.Parallel()
	b := journalOf(t)
	_, err := reopen(t, b)
	require.NoError(t, err)
	for name, damaged := range map[string][]byte{
		"empty":                 {},
		"one byte":              {0},
		"text":                  []byte(strings.Repeat("not a journal\n", 5000)),
		"zeros":                 make([]byte, len(b)),
		"cut after the metas":   b[:2*os.Getpagesize()],
		"cut in the middle":     b[:len(b)/2],
		"cut by a page":         b[:contentSize(t, b)-os.Getpagesize()],
		"foreign bbolt":         foreign(t),
		"another version of it": otherVersion(t),
	} {
		_, err := reopen(t, damaged)
		require.Error(t, err, name)
	}
	_, err = reopen(t, append(b[:len(b):len(b)], make([]byte, 100)...))
	require.NoError(t, err, "a longer file is only grown")
}

// Any damage behind the two meta pages is either refused, or leaves every mark
// as it was recorded last. (A damaged meta page is what a crash in the middle of
// a commit leaves, before Reserve returned: the transaction before it counts.)
func TestFlippedBytesNeverFreeAPosition(t *testing.T) {
	t.Parallel()
	b := journalOf(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	first, size := 2*os.Getpagesize(), contentSize(t, b)
	refused := 0
	for range 300 {
		damaged := append([]byte(nil), b...)
		at := first + rnd.IntN(size-first)
		if rnd.IntN(2) == 0 {
			at = at/os.Getpagesize()*os.Getpagesize() + rnd.IntN(64) // page headers and the first entries
		}
		damaged[at] ^= byte(1 + rnd.IntN(255))
		s, err := reopen(t, damaged)
		if err != nil {
			refused++

			continue
		}
		for _, err := range s.Marks().Reserve(t.Context(), batch(3, "other", 200)) {
			require.ErrorIs(t, err, ErrAlreadySigned, "byte %d", at)
		}
		s.Marks().Reserve(t.Context(), batch(4, "next", 200)) // whatever it says, it does not panic
		require.NoError(t, s.Close())
	}
	require.Positive(t, refused)
	t.Logf("%d of 300 refused", refused)
}

// contentSize is the size of a journal without the part that was only allocated.
func contentSize(t *testing.T, b []byte) (size int) {
	t.Helper()
	s, err := reopen(t, b)
	require.NoError(t, err)
	require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
		size = int(tx.Size())

		return nil
	}))

	return size
}

func foreign(t *testing.T) []byte {
	t.Helper()

	return boltFile(t, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))

		return err
	})
}

func otherVersion(t *testing.T) []byte {
	t.Helper()

	return boltFile(t, func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket(marksBucket); err != nil {
			return err
		}
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}

		return meta.Put(versionKey, []byte{formatVersion + 1})
	})
}

func boltFile(t *testing.T, f func(*bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, errors.Join(db.Update(f), db.Close()))
	b, err := os.ReadFile(path)
	require.NoError(t, err)

	return b
}

func TestUnfinishedJournalIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, journalTemp), []byte("half"), 0o600))
	open(t, dir)
	_, err := os.Stat(filepath.Join(dir, journalTemp))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenNamesWhatItCanNotUse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(file)
	require.ErrorContains(t, err, file)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, journalName), 0o700))
	_, err = Open(dir)
	require.ErrorContains(t, err, journalName)
}

func FuzzParseMark(f *testing.F) {
	m := Mark{Key: key(1), Slot: 5, Root: root("x")}
	f.Add(m.Key[:], m.value())
	f.Add([]byte{}, []byte{})
	f.Add(m.Key[:], make([]byte, markSize))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, err := parseMark(key, value)
		if err == nil {
			require.Equal(t, value, m.value())
			require.Equal(t, key, m.Key[:])
		}
	})
}

func BenchmarkReserve(b *testing.B) {
	s, err := Open(b.TempDir())
	require.NoError(b, err)
	defer s.Close() //nolint:errcheck // end of the benchmark
	slot := uint64(0)
	for b.Loop() {
		slot++
		if err := errors.Join(s.Marks().Reserve(b.Context(), batch(slot, "x", 64))...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/batch64")
}
