package chain

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/wire/wiretest"
)

const testSlot = 4 * time.Second

var testGenesis = time.Unix(1_700_000_000, 0)

// manualTime is a time that a test sets.
type manualTime struct{ nanos atomic.Int64 }

func (m *manualTime) now() time.Time      { return time.Unix(0, m.nanos.Load()) }
func (m *manualTime) set(t time.Time)     { m.nanos.Store(t.UnixNano()) }
func (m *manualTime) slot(s wire.Slot)    { m.set(testGenesis.Add(time.Duration(s) * testSlot)) }
func (m *manualTime) add(d time.Duration) { m.nanos.Add(int64(d)) }

// world is a tree under a manual time.
type world struct {
	t        *testing.T
	time     *manualTime
	clock    *Clock
	tree     *Tree
	genesis  wire.Root
	imported []wire.Root
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	profile, err := wire.LookupProfile("local", wire.SchemeBlake2s)
	require.NoError(t, err)
	w := &world{t: t, time: &manualTime{}, genesis: wire.Root{0xee}}
	w.time.slot(0)
	w.clock = NewClock(testGenesis, testSlot, w.time.now)
	cfg := Config{Profile: profile, Validators: 4, GenesisRoot: w.genesis}
	cfg.OnImport = func(root wire.Root, slot wire.Slot) {
		known, _, ok := w.tree.Known(root) // the tree answers from within the call
		require.True(t, ok)
		require.Equal(t, slot, known)
		w.imported = append(w.imported, root)
	}
	for _, f := range change {
		f(&cfg)
	}
	w.tree, err = NewTree(cfg, w.clock)
	require.NoError(t, err)

	return w
}

// block returns a well-formed block; salt tells blocks of one slot apart.
func (w *world) block(slot wire.Slot, parent wire.Root, salt byte) (*wire.SignedBlock, wire.Root) {
	b := &wire.SignedBlock{Block: wire.Block{
		Slot:          slot,
		ProposerIndex: wire.ValidatorIndex(uint64(slot) % uint64(w.tree.cfg.Validators)),
		ParentRoot:    parent,
		StateRoot:     wire.Root{salt},
	}}

	return b, b.Block.HashTreeRoot(w.tree.cfg.Profile)
}

// insert makes a block at the start of its slot and returns its root.
func (w *world) insert(slot wire.Slot, parent wire.Root, salt byte, want wire.Reason) wire.Root {
	w.t.Helper()
	if w.time.now().Before(w.clock.SlotStart(slot)) {
		w.time.slot(slot)
	}
	b, root := w.block(slot, parent, salt)
	require.Equal(w.t, want, w.tree.InsertBlock(b, root, 0), "block of slot %d", slot)

	return root
}

func checkpoint(root wire.Root, slot wire.Slot) wire.Checkpoint {
	return wire.Checkpoint{Root: root, Slot: slot}
}

// fakeRoot is the root of no block.
func fakeRoot(n uint64) (r wire.Root) {
	binary.BigEndian.PutUint64(r[:], n)
	r[31] = 0xfa

	return r
}

// leanspec returns the folder of the public test vectors; the test ends when it
// is not there.
func leanspec(t *testing.T, family string) string {
	t.Helper()
	return filepath.Join(wiretest.VectorsDir(t), family)
}

// cases reads all cases of a folder and calls f for each.
func cases[T any](t *testing.T, dir string, f func(t *testing.T, c T)) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var byID map[string]T
		require.NoError(t, json.Unmarshal(b, &byID), path)
		for _, c := range byID {
			n++
			t.Run(filepath.Base(path), func(t *testing.T) { f(t, c) })
		}

		return nil
	}))

	return n
}
