package p2p

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// patience is how long a test waits for what real sockets do on a busy machine.
const patience = 30 * time.Second

// fakeIntake is a pipeline whose answers the test chooses.
type fakeIntake struct {
	limits pipeline.Limits
	// got takes every item that reached stage 2, in order of arrival.
	got chan *pipeline.Item

	mu sync.Mutex
	// guarded by mu
	screen   func(topic wire.Topic, payload []byte) (*pipeline.Item, pipeline.Outcome)
	submit   func(ctx context.Context, item *pipeline.Item) pipeline.Outcome
	scores   map[string]pipeline.PeerScore
	screened int
	enqueued int
	peers    map[string]int // screened messages by delivering peer
}

var (
	accepted = pipeline.Outcome{Verdict: pipeline.Accept}
	rejected = pipeline.Outcome{Verdict: pipeline.Reject, Reason: wire.ReasonBadSignature}
	ignored  = pipeline.Outcome{Verdict: pipeline.Ignore, Reason: wire.ReasonUnknownHead}
)

func newFakeIntake() *fakeIntake {
	return &fakeIntake{
		limits: pipeline.Limits{
			Workers: 2, Blocks: 16, Attestations: 256, Aggregates: 64,
			ParkedAttestations: 256, ParkedAggregates: 16,
		},
		got:    make(chan *pipeline.Item, 8192),
		scores: make(map[string]pipeline.PeerScore),
		peers:  make(map[string]int),
	}
}

// Screen takes everything but empty payloads unless the test says otherwise.
func (f *fakeIntake) Screen(topic wire.Topic, peer string, payload []byte) (*pipeline.Item, pipeline.Outcome) {
	f.mu.Lock()
	f.screened++
	f.peers[peer]++
	screen := f.screen
	f.mu.Unlock()
	if screen != nil {
		return screen(topic, payload)
	}
	if len(payload) == 0 {
		return nil, pipeline.Outcome{Verdict: pipeline.Reject, Reason: wire.ReasonMalformed}
	}
	item := &pipeline.Item{Peer: peer, Subnet: topic.Subnet, Payload: payload}
	switch topic.Kind {
	case wire.TopicUnknown:
	case wire.TopicBlock:
		item.Block = &wire.SignedBlock{}
	case wire.TopicAggregation:
		item.Aggregate = &wire.SignedAggregate{}
	case wire.TopicAttestation:
		item.Attestation = &wire.SignedAttestation{}
	}

	return item, pipeline.Outcome{}
}

// Enqueue counts, and leaves the rest to Submit.
func (f *fakeIntake) Enqueue(context.Context, *pipeline.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enqueued++
}

// Submit accepts unless the test says otherwise.
func (f *fakeIntake) Submit(ctx context.Context, item *pipeline.Item) pipeline.Outcome {
	f.mu.Lock()
	submit := f.submit
	f.mu.Unlock()
	f.got <- item
	if submit != nil {
		return submit(ctx, item)
	}

	return accepted
}

func (f *fakeIntake) PeerScore(peer string) pipeline.PeerScore {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.scores[peer]
}

func (f *fakeIntake) Limits() pipeline.Limits { return f.limits }

func (f *fakeIntake) set(change func(*fakeIntake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeIntake) screenedTotal() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.screened
}

// next returns the payload of the next item.
func (f *fakeIntake) next(t *testing.T) []byte {
	t.Helper()
	select {
	case item := <-f.got:
		return item.Payload
	case <-time.After(patience):
		require.FailNow(t, "no message came")

		return nil
	}
}

// none asserts that nothing came so far.
func (f *fakeIntake) none(t *testing.T) {
	t.Helper()
	select {
	case item := <-f.got:
		require.FailNow(t, "a message came", "%x", item.Payload)
	default:
	}
}

// fakeChain is a chain whose Status never changes.
type fakeChain struct{ status wire.Status }

func (c fakeChain) Status() wire.Status { return c.status }

// testNode is one Host at work.
type testNode struct {
	*Host
	intake *fakeIntake
	reg    *prometheus.Registry
	logs   *lockedBuffer
	stop   func()
	done   chan error
}

// lockedBuffer collects log lines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.String()
}

func testProfile(tb testing.TB) *wire.Profile {
	tb.Helper()
	p, err := wire.LookupProfile("devnet5", "")
	require.NoError(tb, err)

	return p
}

// testKey makes a fresh identity.
func testKey(tb testing.TB) (key [32]byte) {
	tb.Helper()
	priv, _, err := crypto.GenerateSecp256k1Key(rand.Reader)
	require.NoError(tb, err)
	raw, err := priv.Raw()
	require.NoError(tb, err)
	copy(key[:], raw)

	return key
}

// testConfig is a host on a free port of the loopback.
func testConfig(tb testing.TB) Config {
	tb.Helper()

	return Config{
		PrivateKey: testKey(tb), ListenIP: netip.MustParseAddr("127.0.0.1"), Port: AnyPort,
		Profile: testProfile(tb), Committees: 4, Subnets: []wire.SubnetID{1}, SlotDuration: 4 * time.Second,
	}
}

// start runs a host until the test ends. change may be nil.
func start(t *testing.T, change func(*Config, *fakeIntake)) *testNode {
	t.Helper()
	cfg := testConfig(t)
	n := &testNode{intake: newFakeIntake(), reg: prometheus.NewRegistry(), logs: &lockedBuffer{}, done: make(chan error, 1)}
	cfg.Registerer = n.reg
	cfg.Logger = slog.New(slog.NewTextHandler(n.logs, nil))
	if change != nil {
		change(&cfg, n.intake)
	}
	h, err := New(cfg, n.intake, fakeChain{wire.Status{Head: wire.Checkpoint{Root: wire.Root{7}, Slot: 9}}})
	require.NoError(t, err)
	n.Host = h
	ctx, cancel := context.WithCancel(t.Context())
	go func() { n.done <- h.Run(ctx) }()
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-n.done)
		})
	}
	t.Cleanup(n.stop)
	select {
	case <-h.Started():
	case err := <-n.done:
		require.NoError(t, err)
	}

	return n
}

// bootnodeOf is the entry of a running node.
func bootnodeOf(n *testNode) Bootnode { return Bootnode{Name: "boot", Multiaddr: n.Addrs()[0]} }

// meshed waits until n has the given number of peers in the mesh of a topic.
func (n *testNode) meshed(t *testing.T, topic wire.Topic, peers int) {
	t.Helper()
	name := topic.Name(n.cfg.Network)
	require.Eventually(t, func() bool { return n.session.Load().tracer.meshSize(name) == peers },
		patience, 5*time.Millisecond, "%s has no mesh of %d", name, peers)
}

// connectedTo reports whether n has a connection with the peer.
func (n *testNode) connectedTo(p peer.ID) bool {
	return len(n.session.Load().host.Network().ConnsToPeer(p)) > 0
}

// count returns the value of one counter.
func count(c prometheus.Counter) int { return int(testutil.ToFloat64(c)) }

// eventually waits for a counter to reach a value.
func eventually(t *testing.T, c prometheus.Counter, want int) {
	t.Helper()
	require.Eventually(t, func() bool { return count(c) >= want }, patience, 5*time.Millisecond,
		"counter never reached %d", want)
}

// stranger is a plain libp2p host without any of our rules.
func stranger(t *testing.T, opts ...libp2p.Option) host.Host {
	t.Helper()
	key := testKey(t)
	priv, err := crypto.UnmarshalSecp256k1PrivateKey(key[:])
	require.NoError(t, err)
	h, err := libp2p.New(append([]libp2p.Option{
		libp2p.Identity(priv), libp2p.Transport(libp2pquic.NewTransport),
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/udp/0/quic-v1"), libp2p.DisableMetrics(),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })

	return h
}

// gossiper is gossip on a stranger with the protocol's parameters and no
// validator.
func gossiper(t *testing.T, h host.Host, opts ...pubsub.Option) *pubsub.PubSub {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ps, err := pubsub.NewGossipSub(ctx, h, append([]pubsub.Option{
		pubsub.WithGossipSubParams(gossipParams()), pubsub.WithNoAuthor(),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithMessageIdFn(messageID),
		pubsub.WithMaxMessageSize(wire.MaxMessageSize), pubsub.WithPeerOutboundQueueSize(1 << 14),
	}, opts...)...)
	require.NoError(t, err)

	return ps
}

// dialTo connects a stranger to a node.
func dialTo(t *testing.T, h host.Host, n *testNode) {
	t.Helper()
	addr, err := ma.NewMultiaddr(n.Addrs()[0])
	require.NoError(t, err)
	info, err := peer.AddrInfoFromP2pAddr(addr)
	require.NoError(t, err)
	require.NoError(t, h.Connect(t.Context(), *info))
}

// vote is an attestation with a recognisable, incompressible signature.
func vote(tb testing.TB, v wire.ValidatorIndex) *wire.SignedAttestation {
	tb.Helper()
	sig := make([]byte, testProfile(tb).SignatureSize)
	_, err := rand.Read(sig)
	require.NoError(tb, err)

	return &wire.SignedAttestation{ValidatorIndex: v, Data: wire.AttestationData{Slot: 3}, Signature: sig}
}

// numbered is the n-th payload of a test, of 1,100 bytes.
func numbered(n int) []byte {
	b := make([]byte, 1100)
	binary.LittleEndian.PutUint64(b, uint64(n)+1)

	return b
}

var (
	blockTopic   = wire.Topic{Kind: wire.TopicBlock}
	aggregations = wire.Topic{Kind: wire.TopicAggregation}
	subnet1      = wire.Topic{Kind: wire.TopicAttestation, Subnet: 1}
)
