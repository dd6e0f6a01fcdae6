package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"aggnode/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testSlot is the slot length of most tests: intervals of 800 ms.
const testSlot = 4 * time.Second

// testClock is the clock of a network by time.Now, which synctest controls.
type testClock struct {
	genesis time.Time
	slot    time.Duration
}

// clockAt returns a clock that is at the start of a slot now.
func clockAt(slot wire.Slot, duration time.Duration) *testClock {
	return &testClock{genesis: time.Now().Add(-time.Duration(slot) * duration), slot: duration}
}

func (c *testClock) Now() time.Time      { return time.Now() }
func (c *testClock) BeforeGenesis() bool { return time.Now().Before(c.genesis) }
func (c *testClock) At() (wire.Slot, wire.Interval) {
	d := time.Since(c.genesis)
	if d < 0 {
		return 0, 0
	}
	n := uint64(d / (c.slot / wire.IntervalsPerSlot))

	return wire.Slot(n / wire.IntervalsPerSlot), wire.Interval(n % wire.IntervalsPerSlot)
}

func (c *testClock) SlotStart(s wire.Slot) time.Time { return c.genesis.Add(time.Duration(s) * c.slot) }

// Signatures and proofs say themselves how they are judged: by their first byte.
const (
	good        = 1
	bad         = 2
	unavailable = 3
	panics      = 4
)

func judge(b []byte, ifBad wire.Reason) wire.Reason {
	switch b[0] {
	case good:
		return wire.ReasonNone
	case unavailable:
		return wire.ReasonVerifierUnavailable
	case panics:
		panic("verifier fails")
	default:
		return ifBad
	}
}

// fakeVerifier judges at once, or when the gate lets a call through.
type fakeVerifier struct {
	gate func(ctx context.Context, first any) // nil: at once

	mu         sync.Mutex
	batches    []int // of votes
	proofs     []int // of aggregates
	aggregates int
}

func (v *fakeVerifier) Attestations(ctx context.Context, batch []*wire.SignedAttestation, out []wire.Reason) {
	v.mu.Lock()
	v.batches = append(v.batches, len(batch))
	v.mu.Unlock()
	if v.gate != nil {
		v.gate(ctx, batch[0])
	}
	for i, a := range batch {
		out[i] = judge(a.Signature, wire.ReasonBadSignature)
	}
}

func (v *fakeVerifier) Aggregates(ctx context.Context, batch []*wire.SignedAggregate, out []wire.Reason) {
	v.mu.Lock()
	v.aggregates += len(batch)
	v.proofs = append(v.proofs, len(batch))
	v.mu.Unlock()
	if v.gate != nil {
		v.gate(ctx, batch[0])
	}
	for i, a := range batch {
		out[i] = judge(a.Proof, wire.ReasonBadProof)
	}
}

func (v *fakeVerifier) Block(ctx context.Context, b *wire.SignedBlock) wire.Reason {
	if v.gate != nil {
		v.gate(ctx, b)
	}

	return judge(b.ProposerSignature, wire.ReasonBadSignature)
}

// checked returns the number of signatures that were looked at.
func (v *fakeVerifier) checked() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.batches {
		n += b
	}

	return n
}

// fakeHead knows roots.
type fakeHead struct {
	mu       sync.Mutex
	known    map[wire.Root]bool
	admit    wire.Reason
	insert   wire.Reason
	fail     bool            // panic in CheckData
	wrong    bool            // CheckData finds everything wrong
	onLookup func()          // called in CheckData before the look
	onInsert func(wire.Root) // called in InsertBlock
}

func newFakeHead(known ...byte) *fakeHead {
	h := &fakeHead{known: make(map[wire.Root]bool)}
	for _, k := range known {
		h.known[rootOf(k)] = true
	}

	return h
}

func (h *fakeHead) CheckData(d *wire.AttestationData) (wire.Reason, wire.Root) {
	if h.onLookup != nil {
		h.onLookup()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail {
		panic("head view fails")
	}
	if h.wrong || d.Source.Slot > d.Target.Slot {
		return wire.ReasonBadCheckpoints, wire.Root{}
	}
	for _, r := range []wire.Root{d.Head.Root, d.Target.Root} {
		if !h.known[r] {
			return wire.ReasonUnknownHead, r
		}
	}

	return wire.ReasonNone, wire.Root{}
}

func (h *fakeHead) learn(root wire.Root) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[root] = true
}

func (h *fakeHead) AdmitBlock(*wire.SignedBlock, wire.Root) wire.Reason { return h.admit }
func (h *fakeHead) InsertBlock(_ *wire.SignedBlock, root wire.Root, size int) wire.Reason {
	if size == 0 {
		return wire.ReasonMalformed
	}
	if h.onInsert != nil {
		h.onInsert(root)
	}

	return h.insert
}

// fakeSink remembers what it took.
type fakeSink struct {
	mu           sync.Mutex
	full, fail   bool
	attestations map[wire.ValidatorIndex]int
	aggregates   int
}

func (s *fakeSink) AddAttestation(_ context.Context, a *wire.SignedAttestation, root wire.DataRoot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		panic("sink fails")
	}
	if s.full || root != a.Data.HashTreeRoot() {
		return false
	}
	if s.attestations == nil {
		s.attestations = make(map[wire.ValidatorIndex]int)
	}
	s.attestations[a.ValidatorIndex]++

	return true
}

func (s *fakeSink) AddAggregate(_ context.Context, a *wire.SignedAggregate, root wire.DataRoot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		panic("sink fails")
	}
	if s.full || root != a.Data.HashTreeRoot() {
		return false
	}
	s.aggregates++

	return true
}

func (s *fakeSink) counts() (validators, attestations, aggregates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.attestations {
		attestations += n
	}

	return len(s.attestations), attestations, s.aggregates
}

// rig is a pipeline with its surroundings.
type rig struct {
	*Pipeline
	t        testing.TB
	clock    *testClock
	verifier *fakeVerifier
	head     *fakeHead
	sink     *fakeSink
	registry *prometheus.Registry
}

// newRig makes a pipeline that does not run. Block 1 is known. mutate may change
// the configuration.
func newRig(t testing.TB, clock *testClock, mutate func(*Config)) *rig {
	profile, err := wire.LookupProfile("local", "blake2s")
	require.NoError(t, err)
	r := &rig{
		t: t, clock: clock, verifier: &fakeVerifier{}, head: newFakeHead(1), sink: &fakeSink{},
		registry: prometheus.NewRegistry(),
	}
	cfg := Config{
		Profile: profile, Validators: 1024, Committees: 1, Subnets: []wire.SubnetID{0}, Workers: 2,
		SlotDuration: clock.slot, Registerer: r.registry,
	}
	if mutate != nil {
		mutate(&cfg)
	}
	r.Pipeline, err = New(cfg, clock, r.verifier, r.head, r.sink)
	require.NoError(t, err)

	return r
}

// start runs the pipeline until the test ends or stop is called.
func (r *rig) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	})

	return stop
}

// inBubble runs a test with a pipeline at the start of slot 10, under synctest.
func inBubble(t *testing.T, mutate func(*Config), f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clockAt(10, testSlot), mutate)
		stop := r.start()
		defer stop()
		f(r)
	})
}

// advance lets the time of the bubble pass, and what follows from it happen.
func advance(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func rootOf(b byte) (r wire.Root) {
	r[0] = b

	return r
}

// dataFor returns attestation data of a slot with head and target block head.
// variant makes several of them.
func dataFor(slot wire.Slot, head byte, variant uint64) wire.AttestationData {
	d := wire.AttestationData{
		Slot:   slot,
		Head:   wire.Checkpoint{Root: rootOf(head), Slot: slot},
		Target: wire.Checkpoint{Root: rootOf(head), Slot: slot},
	}
	binary.LittleEndian.PutUint64(d.Source.Root[:], variant)

	return d
}

func (r *rig) attestation(v int, data wire.AttestationData, quality byte) *wire.SignedAttestation {
	sig := make([]byte, r.cfg.Profile.SignatureSize)
	sig[0] = quality

	return &wire.SignedAttestation{ValidatorIndex: wire.ValidatorIndex(v), Data: data, Signature: sig}
}

func participants(t testing.TB, indices ...int) wire.Participants {
	list := make([]wire.ValidatorIndex, len(indices))
	for i, v := range indices {
		list[i] = wire.ValidatorIndex(v)
	}
	p, err := wire.NewParticipants(list)
	require.NoError(t, err)

	return p
}

func (r *rig) aggregate(data wire.AttestationData, size int, quality byte, indices ...int) *wire.SignedAggregate {
	proof := make([]byte, size)
	proof[0] = quality

	return &wire.SignedAggregate{Data: data, Participants: participants(r.t, indices...), Proof: proof}
}

func (r *rig) block(slot wire.Slot, quality byte) *wire.SignedBlock {
	sig := make([]byte, r.cfg.Profile.SignatureSize)
	sig[0] = quality

	return &wire.SignedBlock{Block: wire.Block{Slot: slot, ParentRoot: rootOf(1)}, ProposerSignature: sig}
}

// encode returns topic and payload of a vote, an aggregate or a block.
func (r *rig) encode(m any) (topic wire.Topic, payload []byte) {
	var err error
	switch m := m.(type) {
	case *wire.SignedAttestation:
		topic = wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetOf(m.ValidatorIndex, r.cfg.Committees)}
		payload, err = r.cfg.Profile.EncodeAttestation(m)
	case *wire.SignedAggregate:
		topic = wire.Topic{Kind: wire.TopicAggregation}
		payload, err = r.cfg.Profile.EncodeAggregate(m)
	case *wire.SignedBlock:
		topic = wire.Topic{Kind: wire.TopicBlock}
		payload, err = r.cfg.Profile.EncodeBlock(m)
	default:
		err = errors.New("nothing to encode")
	}
	require.NoError(r.t, err)

	return topic, payload
}

// receive takes a message the whole way, as p2p does.
func (r *rig) receive(peer string, m any) Outcome {
	return r.receiveCtx(context.Background(), peer, m)
}

func (r *rig) receiveCtx(ctx context.Context, peer string, m any) Outcome {
	topic, payload := r.encode(m)
	it, out := r.Screen(topic, peer, payload)
	if it == nil {
		return out
	}

	return r.Submit(ctx, it)
}

// later calls receive on a goroutine of its own; the outcome comes on the
// channel.
func (r *rig) later(peer string, m any) <-chan Outcome {
	ch := make(chan Outcome, 1)
	go func() { ch <- r.receive(peer, m) }()

	return ch
}

// balanced asserts that received equals the verdicts plus the items in flight,
// in each class, and returns the counts by reason.
func (r *rig) balanced() map[string]int {
	families, err := r.registry.Gather()
	require.NoError(r.t, err)
	received, ended, flight := map[string]int{}, map[string]int{}, map[string]int{}
	reasons := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			switch f.GetName() {
			case "aggnode_pipeline_received_total":
				received[labels["class"]] += int(m.GetCounter().GetValue())
			case "aggnode_pipeline_verdicts_total":
				ended[labels["class"]] += int(m.GetCounter().GetValue())
				reasons[labels["reason"]] += int(m.GetCounter().GetValue())
			case "aggnode_pipeline_in_flight":
				flight[labels["class"]] += int(m.GetGauge().GetValue())
			}
		}
	}
	for _, c := range Classes() {
		require.Equal(r.t, received[c.String()], ended[c.String()]+flight[c.String()], "class %v", c)
	}

	return reasons
}
