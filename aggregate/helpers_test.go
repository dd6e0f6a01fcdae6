package aggregate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testClock is a slot clock over the (virtual) time of the test.
type testClock struct {
	genesis time.Time
	slot    time.Duration
}

func (c *testClock) Now() time.Time      { return time.Now() }
func (c *testClock) BeforeGenesis() bool { return time.Now().Before(c.genesis) }
func (c *testClock) Slot() wire.Slot {
	if c.BeforeGenesis() {
		return 0
	}
	return wire.Slot(time.Since(c.genesis) / c.slot)
}

func (c *testClock) SlotStart(s wire.Slot) time.Time {
	return c.genesis.Add(time.Duration(s) * c.slot)
}

func (c *testClock) IntervalStart(s wire.Slot, i wire.Interval) time.Time {
	return c.SlotStart(s).Add(time.Duration(i) * c.slot / wire.IntervalsPerSlot)
}

func testRegistry(t testing.TB, n int) *pubkeycache.Registry {
	t.Helper()
	validators := make([]wire.Validator, n)
	for i := range validators {
		key := func(role string) []byte {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", role, i))
			return sum[:]
		}
		validators[i] = wire.Validator{Index: wire.ValidatorIndex(i), AttestationKey: key("attestation"), ProposalKey: key("proposal")}
	}
	r, err := pubkeycache.NewRegistry(xmss.Blake2s, validators)
	require.NoError(t, err)
	return r
}

func testProfile(t testing.TB) *wire.Profile {
	t.Helper()
	p, err := wire.LookupProfile("local", "blake2s")
	require.NoError(t, err)
	return p
}

// dataOf makes attestation data of a slot; name tells apart what one slot's votes may say.
func dataOf(slot wire.Slot, name string) wire.AttestationData {
	head := wire.Root(sha256.Sum256([]byte(name)))
	cp := wire.Checkpoint{Root: head, Slot: slot}
	return wire.AttestationData{Slot: slot, Head: cp, Target: cp}
}

func vote(v wire.ValidatorIndex, data wire.AttestationData) *wire.SignedAttestation {
	return &wire.SignedAttestation{ValidatorIndex: v, Data: data, Signature: signature(v)}
}

func signature(v wire.ValidatorIndex) []byte {
	s := make([]byte, 1208)
	binary.LittleEndian.PutUint64(s, uint64(v))
	return s
}

func participants(t testing.TB, indices ...wire.ValidatorIndex) wire.Participants {
	t.Helper()
	p, err := wire.NewParticipants(indices)
	require.NoError(t, err)
	return p
}

// upTo is the indices 0 to n-1.
func upTo(n int) []wire.ValidatorIndex {
	out := make([]wire.ValidatorIndex, n)
	for i := range out {
		out[i] = wire.ValidatorIndex(i)
	}
	return out
}

// proofOf is the proof that the fake prover makes and the fake checker accepts: bound to message and signer set.
func proofOf(c prover.Claim) []byte {
	sum := sha256.Sum256(append(c.Message[:], c.SignerSet...))
	return append([]byte("proof:"), sum[:]...)
}

func claimOf(r *pubkeycache.Registry, root wire.DataRoot, slot wire.Slot, p wire.Participants) prover.Claim {
	var keys [][]byte
	p.ForEach(func(v wire.ValidatorIndex) { keys = append(keys, keyring{r}.key(v)) })
	return prover.Claim{Message: root, Epoch: uint32(slot), SignerSet: prover.NewSignerSet(keys)}
}

// aggregateOf is an aggregate as another aggregator would have made it.
func aggregateOf(t testing.TB, r *pubkeycache.Registry, data wire.AttestationData, indices ...wire.ValidatorIndex) *wire.SignedAggregate {
	t.Helper()
	p := participants(t, indices...)
	return &wire.SignedAggregate{Data: data, Participants: p, Proof: proofOf(claimOf(r, data.HashTreeRoot(), data.Slot, p))}
}

// behaviour is what the fake prover does with its next job.
type behaviour uint8

const (
	proves       behaviour = iota
	crashes                // after half of its time
	hangs                  // until its context ends
	hangsForever           // even longer, until it is released
	getsStuck              // as the prover's watch on progress reports it
	lies                   // a proof of something else
	provesNothing
	refusesVote  // the first raw signature
	refusesChild // the first child
	refusesAll   // without saying which input
)

// fakeProver takes as long as its figures say.
type fakeProver struct {
	mu               sync.Mutex
	caps             prover.Capabilities
	isReady          bool
	fixed, raw, each time.Duration
	next             []behaviour
	calls            []prover.Job
	busy             time.Duration
	violations       []string
	released         chan struct{}
	onCall           func(prover.Job) // may be nil
}

func newFakeProver() *fakeProver {
	return &fakeProver{
		caps: prover.Capabilities{
			Backend: "fake", MaxChildren: 16, MaxRaw: wire.DefaultRegistryLimit, MinInputs: 1, ProofBytesMax: wire.MaxProofSize,
			HelloProve: 600 * time.Millisecond,
		},
		isReady: true, fixed: 600 * time.Millisecond, raw: 5 * time.Millisecond, each: 1200 * time.Millisecond,
		released: make(chan struct{}),
	}
}

func (f *fakeProver) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isReady
}

func (f *fakeProver) Capabilities() (prover.Capabilities, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.caps, true
}

func (f *fakeProver) set(change func(*fakeProver)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeProver) jobs() []prover.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// check notes what no prover should be asked: invariant 11.
func (f *fakeProver) checkLocked(j prover.Job) {
	seen := make(map[string]bool)
	for _, r := range j.Raw {
		if seen[string(r.PublicKey)] {
			f.violations = append(f.violations, "a validator is raw twice")
		}
		seen[string(r.PublicKey)] = true
	}
	children := make(map[string]bool)
	for _, c := range j.Children {
		for i := range c.Claim.Signers() {
			key := string(c.Claim.Key(i))
			if seen[key] {
				f.violations = append(f.violations, "a validator is raw and in a child")
			}
			if children[key] && !f.caps.ChildrenMayOverlap {
				f.violations = append(f.violations, "children overlap")
			}
			children[key] = true
		}
		if !bytes.Equal(c.Proof, proofOf(c.Claim)) {
			f.violations = append(f.violations, "a child's claim is not its proof's")
		}
	}
	if len(j.Raw)+len(j.Children) < 2 {
		f.violations = append(f.violations, "a pointless job")
	}
}

func (f *fakeProver) Prove(ctx context.Context, j prover.Job) (prover.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, j)
	f.checkLocked(j)
	if f.onCall != nil {
		f.onCall(j)
	}
	what := proves
	if len(f.next) > 0 {
		what, f.next = f.next[0], f.next[1:]
	}
	wall := f.fixed + time.Duration(len(j.Raw))*f.raw + time.Duration(len(j.Children))*f.each
	f.mu.Unlock()
	began := time.Now()
	if what == hangs && !j.Overdue.IsZero() { // a child that spins: it has used its CPU when it is overdue
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, j.Overdue)
		defer cancel()
	}
	defer func() { f.set(func(f *fakeProver) { f.busy += time.Since(began) }) }()

	switch what {
	case refusesVote:
		return prover.Result{}, &prover.RefusedError{Code: prover.CodeBadSignature, Index: 0, Text: "signature 0 does not verify"}
	case refusesChild:
		return prover.Result{}, &prover.RefusedError{Code: prover.CodeBadChild, Index: 0, Text: "child 0 does not verify"}
	case refusesAll:
		return prover.Result{}, &prover.RefusedError{Code: prover.CodeInternal, Index: -1, Text: "no"}
	case hangs:
		<-ctx.Done()
		return prover.Result{}, fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrTimeout)
	case hangsForever:
		<-f.released
		return prover.Result{}, prover.ErrTimeout
	case crashes:
		wall /= 2
	case getsStuck:
		wall = 3 * time.Second
	case proves, lies, provesNothing:
	}
	timer := time.NewTimer(wall)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return prover.Result{}, fmt.Errorf("%w: %w", prover.ErrUnavailable, context.Cause(ctx))
	}
	switch what {
	case crashes:
		return prover.Result{}, &prover.CrashError{Signal: 11}
	case getsStuck:
		return prover.Result{}, fmt.Errorf("%w: %w", prover.ErrUnavailable, prover.ErrStuck)
	case lies:
		return prover.Result{Proof: []byte("something else")}, nil
	case provesNothing:
		return prover.Result{}, nil
	case proves, hangs, hangsForever, refusesVote, refusesChild, refusesAll:
	}
	return prover.Result{Proof: proofOf(j.Claim()), Wall: wall}, nil
}

// fakeBudget grants at once, or after a delay.
type fakeBudget struct {
	mu    sync.Mutex
	delay time.Duration
	held  int
}

func (b *fakeBudget) Acquire(ctx context.Context) (func(), error) {
	b.mu.Lock()
	delay := b.delay
	b.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held--
	}, nil
}

// fakeNetwork checks and takes what the aggregator makes.
type fakeNetwork struct {
	registry *pubkeycache.Registry

	mu        sync.Mutex
	peers     int
	checkTime time.Duration // of a self-check
	stall     time.Duration
	failures  int // of the next publications
	noAnswers int // of the next checks
	sent      []*wire.SignedAggregate
	sentAt    []time.Time
	checks    int
	onSent    func(*wire.SignedAggregate) // may be nil
}

func (n *fakeNetwork) CheckAggregate(ctx context.Context, a *wire.SignedAggregate) wire.Reason {
	n.mu.Lock()
	timer := time.NewTimer(n.checkTime)
	n.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return wire.ReasonStopping
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.checks++
	if n.noAnswers > 0 {
		n.noAnswers--
		return wire.ReasonVerifierUnavailable
	}
	if !bytes.Equal(a.Proof, proofOf(claimOf(n.registry, a.Data.HashTreeRoot(), a.Data.Slot, a.Participants))) {
		return wire.ReasonBadProof
	}
	return wire.ReasonNone
}

func (n *fakeNetwork) PublishAggregate(ctx context.Context, a *wire.SignedAggregate) (int, error) {
	n.mu.Lock()
	stall, fails := n.stall, n.failures > 0
	if fails {
		n.failures--
	}
	n.mu.Unlock()
	if stall > 0 {
		timer := time.NewTimer(stall)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if fails {
		return 0, fmt.Errorf("topic closed")
	}
	n.sent = append(n.sent, a)
	n.sentAt = append(n.sentAt, time.Now())
	if n.onSent != nil {
		n.onSent(a)
	}
	return n.peers, nil
}

func (n *fakeNetwork) set(change func(*fakeNetwork)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *fakeNetwork) published() []*wire.SignedAggregate {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sent)
}

// journal is a log handler that keeps one line for each record, with the time since genesis.
type journal struct {
	clock *testClock
	mu    *sync.Mutex
	lines *[]string
}

func (j journal) Enabled(context.Context, slog.Level) bool { return true }
func (j journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j journal) WithGroup(string) slog.Handler            { return j }

func (j journal) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%7.3f %-5s %s", time.Since(j.clock.genesis).Seconds(), r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	*j.lines = append(*j.lines, b.String())
	return nil
}

// rig is an aggregator with a pool and fakes around it. It must be made inside a synctest bubble.
type rig struct {
	t        testing.TB
	clock    *testClock
	registry *pubkeycache.Registry
	reg      *prometheus.Registry
	pool     *Pool
	agg      *Aggregator
	prover   *fakeProver
	budget   *fakeBudget
	net      *fakeNetwork
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu    sync.Mutex
	lines []string
}

type rigConfig struct {
	validators  int
	committees  uint64
	subnets     []wire.SubnetID
	slot        time.Duration
	maxChildren int
	hold        bool
	genesisIn   time.Duration
	prover      *fakeProver
	configure   func(*Config)
}

func newRig(t testing.TB, c rigConfig) *rig {
	t.Helper()
	if c.committees == 0 {
		c.committees, c.subnets = 1, []wire.SubnetID{0}
	}
	if c.slot == 0 {
		c.slot = 4 * time.Second
	}
	if c.prover == nil {
		c.prover = newFakeProver()
	}
	r := &rig{
		t: t, clock: &testClock{genesis: time.Now().Add(c.genesisIn), slot: c.slot}, registry: testRegistry(t, c.validators),
		reg: prometheus.NewRegistry(), prover: c.prover, budget: &fakeBudget{},
	}
	r.net = &fakeNetwork{registry: r.registry, peers: 3, checkTime: 20 * time.Millisecond}
	logger := slog.New(journal{clock: r.clock, mu: &r.mu, lines: &r.lines})
	var err error
	r.pool, err = NewPool(PoolConfig{Committees: c.committees, Subnets: c.subnets, Logger: logger, Registerer: r.reg}, r.registry, r.clock)
	require.NoError(t, err)
	profile := testProfile(t)
	if c.hold {
		held := *profile
		held.HoldUntilInterval2 = true
		profile = &held
	}
	cfg := Config{
		Enabled: true, Profile: profile, Network: "test", Subnets: c.subnets, Committees: c.committees,
		MaxChildren: c.maxChildren, Logger: logger, Registerer: r.reg,
	}
	if c.configure != nil {
		c.configure(&cfg)
	}
	r.agg, err = NewAggregator(cfg, r.pool, r.clock, r.prover, r.budget, r.net, r.net)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.done.Go(func() { _ = r.pool.Run(ctx) })
	r.done.Go(func() { _ = r.agg.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		r.done.Wait()
	})
	synctest.Wait()
	return r
}

// stop ends everything and checks what must always hold.
func (r *rig) stop() {
	r.cancel()
	r.done.Wait()
	require.Empty(r.t, r.prover.violations)
	require.Zero(r.t, r.budget.held, "every grant was given back")
}

// wait lets virtual time pass.
func (r *rig) wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// until waits for a moment of a slot.
func (r *rig) until(s wire.Slot, i wire.Interval, more time.Duration) {
	r.wait(time.Until(r.clock.IntervalStart(s, i).Add(more)))
}

func (r *rig) vote(data wire.AttestationData, indices ...wire.ValidatorIndex) {
	for _, v := range indices {
		require.True(r.t, r.pool.AddAttestation(context.Background(), vote(v, data), data.HashTreeRoot()))
	}
	synctest.Wait()
}

func (r *rig) aggregate(data wire.AttestationData, indices ...wire.ValidatorIndex) {
	a := aggregateOf(r.t, r.registry, data, indices...)
	require.True(r.t, r.pool.AddAggregate(context.Background(), a, data.HashTreeRoot()))
	synctest.Wait()
}

// slotLines returns the lines of the slots so far.
func (r *rig) slotLines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, l := range r.lines {
		if strings.Contains(l, "INFO  aggregation ") {
			out = append(out, l)
		}
	}
	return out
}

// value reads a counter or gauge by name and label values.
func (r *rig) value(name string, labels ...string) float64 {
	families, err := r.reg.Gather()
	require.NoError(r.t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if !slices.Equal(have, labels) {
				continue
			}
			switch {
			case m.GetCounter() != nil:
				return m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				return m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				return float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	require.Failf(r.t, "no such series", "%s %v", name, labels)
	return 0
}

func rootOf(d wire.AttestationData) wire.DataRoot { return d.HashTreeRoot() }
