package signer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/store"
	"aggnode/wire"
	"aggnode/xmss"
)

const (
	testSlot     = 4 * time.Second
	testInterval = testSlot / 5
)

// fakeClock is the slot clock over time.Now, for use under synctest.
type fakeClock struct{ genesis time.Time }

func (c fakeClock) Now() time.Time { return time.Now() }

func (c fakeClock) At() (wire.Slot, wire.Interval) {
	n := max(0, time.Since(c.genesis)/testInterval)

	return wire.Slot(n / 5), wire.Interval(n % 5)
}

func (c fakeClock) SlotStart(s wire.Slot) time.Time {
	return c.genesis.Add(time.Duration(min(s, 1<<30)) * testSlot)
}

func (c fakeClock) IntervalStart(s wire.Slot, i wire.Interval) time.Time {
	return c.SlotStart(s).Add(time.Duration(i) * testInterval)
}

func (c fakeClock) WaitUntil(ctx context.Context, t time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// subtreeSize is how many positions of a fakeKey one build serves, as with real keys.
const subtreeSize = 512

// fakeKey signs by hashing. Its times pass on the clock of the bubble.
type fakeKey struct {
	public xmss.PublicKey
	end    uint32 // last epoch; 0: all
	signs  time.Duration
	builds time.Duration // of a subtree
	err    error
	panics bool
	stuck  bool // waits for ctx

	// guarded by mu
	mu       sync.Mutex
	searched []uint32
	signed   []uint32
	prepare  []uint32       // epochs that were asked to be prepared
	begun    map[uint32]int // trials, by epoch
	built    int            // subtrees
	subtrees map[uint32]chan struct{}
}

func newKey(i int) *fakeKey {
	return &fakeKey{public: sha256.Sum256(fmt.Append(nil, i)), subtrees: map[uint32]chan struct{}{}}
}

func (k *fakeKey) PublicKey() xmss.PublicKey { return k.public }

func (k *fakeKey) Prepare(ctx context.Context, epoch uint32) error {
	if k.end != 0 && epoch > k.end {
		return xmss.ErrEpochRange
	}
	k.mu.Lock()
	k.prepare = append(k.prepare, epoch)
	k.mu.Unlock()
	if k.panics {
		panic("key of glass")
	}

	return k.subtree(ctx, epoch)
}

func (k *fakeKey) Begin(_ context.Context, epoch uint32, trials int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begun == nil {
		k.begun = map[uint32]int{}
	}
	k.begun[epoch] = trials

	return nil
}

// subtree returns when the subtree of an epoch is there: the first who comes builds it, the others wait for that.
func (k *fakeKey) subtree(ctx context.Context, epoch uint32) error {
	k.mu.Lock()
	ready, ok := k.subtrees[epoch/subtreeSize]
	if !ok {
		ready = make(chan struct{}) // closed, never sent to
		k.subtrees[epoch/subtreeSize] = ready
		k.built++
	}
	k.mu.Unlock()
	if ok {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(ready)

	return pass(ctx, k.builds)
}

func (k *fakeKey) Search(ctx context.Context, epoch uint32, message [xmss.MessageSize]byte) (func() []byte, error) {
	switch {
	case k.panics:
		panic("key of glass")
	case k.err != nil:
		return nil, k.err
	case k.end != 0 && epoch > k.end:
		return nil, fmt.Errorf("%w: %d", xmss.ErrEpochRange, epoch)
	case k.stuck:
		<-ctx.Done()

		return nil, ctx.Err()
	}
	if err := errors.Join(k.subtree(ctx, epoch), pass(ctx, k.signs)); err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.searched = append(k.searched, epoch)
	k.mu.Unlock()

	return func() []byte {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.signed = append(k.signed, epoch)

		return signature(k, epoch, message)
	}, nil
}

func signature(k *fakeKey, epoch uint32, message [32]byte) []byte {
	sum := sha256.Sum256(fmt.Append(nil, k.public, epoch, message))

	return sum[:]
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fakeMarks keeps marks in memory and notes each batch.
type fakeMarks struct {
	takes   time.Duration // the disk
	mu      sync.Mutex
	last    map[[32]byte]store.Mark
	batches [][]store.Mark
	err     error
}

func (m *fakeMarks) Reserve(ctx context.Context, marks []store.Mark) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = pass(ctx, m.takes)
	errs := make([]error, len(marks))
	if len(marks) > 0 {
		m.batches = append(m.batches, marks)
	}
	if m.last == nil {
		m.last = map[[32]byte]store.Mark{}
	}
	for i, mark := range marks {
		last, ok := m.last[mark.Key]
		switch {
		case m.err != nil:
			errs[i] = m.err
		case ok && last.Slot > mark.Slot:
			errs[i] = store.ErrBelowMark
		case ok && last.Slot == mark.Slot && last.Root != mark.Root:
			errs[i] = store.ErrAlreadySigned
		default:
			m.last[mark.Key] = mark
		}
	}

	return errs
}

// fakeChain gives votes for a head that is the slot, and knows some blocks.
type fakeChain struct {
	blockAt func(slot wire.Slot) time.Time            // when the slot's block is known; nil: at once
	data    func(slot wire.Slot) wire.AttestationData // nil: testData
}

func testData(slot wire.Slot) wire.AttestationData {
	head := wire.Checkpoint{Root: wire.Root{byte(slot), 1}, Slot: slot}

	return wire.AttestationData{Slot: slot, Head: head, Target: head}
}

func (c *fakeChain) AttestationData(slot wire.Slot) wire.AttestationData {
	if c.data != nil {
		return c.data(slot)
	}

	return testData(slot)
}

func (c *fakeChain) WaitBlock(ctx context.Context, slot wire.Slot) error {
	if c.blockAt == nil {
		return nil
	}

	return pass(ctx, max(1, time.Until(c.blockAt(slot))))
}

// sent is one vote as the network or our own pipeline saw it.
type sent struct {
	vote *wire.SignedAttestation
	at   time.Time
}

// fakeNet takes votes, as publisher and as deliverer.
type fakeNet struct {
	mu        sync.Mutex
	published []sent
	delivered []sent
	err       error
	panics    bool
	reason    wire.Reason
	check     func(*wire.SignedAttestation) // called before a vote is taken
}

func (n *fakeNet) PublishAttestation(_ context.Context, a *wire.SignedAttestation) (int, error) {
	if n.panics {
		panic("network of glass")
	}
	if n.check != nil {
		n.check(a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.published = append(n.published, sent{a, time.Now()})

	return 3, n.err
}

func (n *fakeNet) SubmitAttestation(_ context.Context, a *wire.SignedAttestation) wire.Reason {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delivered = append(n.delivered, sent{a, time.Now()})

	return n.reason
}

// rig is a signer over fakes.
type rig struct {
	*Signer
	keys  []*fakeKey
	marks *fakeMarks
	chain *fakeChain
	net   *fakeNet
	clock fakeClock
}

var errFault = errors.New("fault")

// newRig makes a signer with attestation keys 0..n-1; change may alter all of it
// before.
func newRig(t *testing.T, n int, change func(*rig, *Config, []validator)) *rig {
	t.Helper()
	r := &rig{marks: &fakeMarks{}, chain: &fakeChain{}, net: &fakeNet{}, clock: fakeClock{genesis: time.Now()}}
	validators := make([]validator, n)
	for i := range validators {
		k := newKey(i)
		r.keys = append(r.keys, k)
		validators[i] = validator{index: wire.ValidatorIndex(i), attestation: k}
	}
	cfg := Config{Validators: 64, Parallel: 2}
	if change != nil {
		change(r, &cfg, validators)
	}
	var err error
	r.Signer, err = newSigner(cfg, validators, r.marks, r.clock, r.chain, r.net, r.net)
	require.NoError(t, err)

	return r
}
