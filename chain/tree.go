package chain

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"aggnode/wire"
)

// Config configures a [Tree].
type Config struct {
	// Profile is the network line; its envelope tells whether blocks carry a
	// signature that somebody checked before InsertBlock.
	Profile *wire.Profile
	// Validators is the size of the registry, at least 1.
	Validators int
	// GenesisRoot is the root of the block of slot 0.
	GenesisRoot wire.Root
	// Local are validators of this node. Their blocks tell nothing about how our
	// clock agrees with the network's.
	Local []wire.ValidatorIndex
	// OnImport is called for each imported block, parents before children of one
	// InsertBlock, on its goroutine and with no lock held. May be nil.
	OnImport func(root wire.Root, slot wire.Slot)
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Tree is the block tree and the head view. Safe for concurrent use.
type Tree struct {
	// immutable
	cfg     Config
	clock   *Clock
	log     *slog.Logger
	metrics *treeMetrics
	genesis *node

	mu      sync.RWMutex
	blocks  map[wire.Root]*node   // guarded by mu: all imported blocks
	slots   map[wire.Slot][]*node // guarded by mu: the same by slot, at most maxPerSlot each
	head    *node                 // guarded by mu
	lowest  wire.Slot             // guarded by mu: no block but genesis is below
	floor   wire.Slot             // guarded by mu: side branches below are gone
	swept   wire.Slot             // guarded by mu: the current slot when that was last looked at
	parked  parking               // guarded by mu
	cadence cadence               // guarded by mu
	changed chan struct{}         // guarded by mu: closed and replaced at each import
}

// node is one imported block. Its links are guarded by Tree.mu, the rest is
// immutable.
type node struct {
	root       wire.Root
	parentRoot wire.Root
	slot       wire.Slot

	parent *node // genesis across a gap; genesis is its own parent
	jump   *node // an ancestor further down, see link
	depth  uint64
	gap    *node // the node above the gap on the way to genesis, nil without one

	included []inclusion // votes in the body; nil for blocks that are not recent
}

// inclusion is one entry of a block body.
type inclusion struct {
	data         wire.DataRoot
	participants wire.Participants
}

// NewTree returns a tree that holds the genesis block.
func NewTree(cfg Config, clock *Clock) (*Tree, error) {
	switch {
	case cfg.Profile == nil:
		return nil, fmt.Errorf("chain: no profile")
	case cfg.Validators < 1 || cfg.Validators > cfg.Profile.RegistryLimit:
		return nil, fmt.Errorf("chain: %d validators, must be 1 to %d", cfg.Validators, cfg.Profile.RegistryLimit)
	}
	genesis := &node{root: cfg.GenesisRoot}
	genesis.parent, genesis.jump = genesis, genesis
	t := &Tree{
		cfg:     cfg,
		clock:   clock,
		log:     logger(cfg.Logger),
		genesis: genesis,
		blocks:  map[wire.Root]*node{genesis.root: genesis},
		slots:   map[wire.Slot][]*node{0: {genesis}},
		head:    genesis,
		lowest:  math.MaxUint64, // none yet
		parked:  newParking(),
		cadence: newCadence(cfg.Validators, cfg.Local),
		changed: make(chan struct{}),
	}
	var err error
	if t.metrics, err = newTreeMetrics(cfg.Registerer, t); err != nil {
		return nil, err
	}

	return t, nil
}

// Head returns the highest block known; of several at one slot the one with the
// larger root.
func (t *Tree) Head() wire.Checkpoint {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return t.head.checkpoint()
}

// Source returns the source of votes of this node: the justified checkpoint of
// the head's chain.
func (t *Tree) Source() wire.Checkpoint { return t.Justified() }

// Justified returns the newest justified checkpoint known: genesis.
func (t *Tree) Justified() wire.Checkpoint { return t.genesis.checkpoint() }

// Finalized returns the newest finalized checkpoint known: genesis.
func (t *Tree) Finalized() wire.Checkpoint { return t.genesis.checkpoint() }

// Known returns slot and parent of an imported block. The parent itself may be
// unknown when it lies in a gap.
func (t *Tree) Known(root wire.Root) (slot wire.Slot, parent wire.Root, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, ok := t.blocks[root]
	if !ok {
		return 0, wire.Root{}, false
	}

	return n.slot, n.parentRoot, true
}

// checkpoint returns root and slot of the block.
func (n *node) checkpoint() wire.Checkpoint { return wire.Checkpoint{Root: n.root, Slot: n.slot} }

// beats reports whether n is a better head than o.
func (n *node) beats(o *node) bool {
	if n.slot != o.slot {
		return n.slot > o.slot
	}

	return bytes.Compare(n.root[:], o.root[:]) > 0
}

// link hangs n under parent. The jump pointer leads to an ancestor chosen as in
// a skew-binary list (Myers, "An applicative random-access stack", 1983), so
// that any ancestor is found in O(log depth) steps.
func (n *node) link(parent *node) {
	n.parent = parent
	n.depth = parent.depth + 1
	n.gap = parent.gap
	n.jump = parent
	if j := parent.jump; parent.depth-j.depth == j.depth-j.jump.depth {
		n.jump = j.jump
	}
}

// linkOverGap hangs n under genesis although blocks between are unknown.
func (n *node) linkOverGap(genesis *node) {
	n.link(genesis)
	n.gap = n
}

// ancestorAt returns the newest ancestor of n, or n itself, whose slot is at
// most slot.
func (n *node) ancestorAt(slot wire.Slot) *node {
	for n.slot > slot {
		if n.jump.slot >= slot {
			n = n.jump
		} else {
			n = n.parent
		}
	}

	return n
}
