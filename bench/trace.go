package bench

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	"aggnode/netconfig/devkeys"
	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

// The folder and not the file, so that gen can be built before the file exists.
//
//go:embed testdata/trace
var traceFiles embed.FS

const traceFile = "testdata/trace/lean-pq.capture"

const (
	traceProfile = "lean-pq"
	// traceSlot is the slot of everything in the trace. All votes agree, as in a quiet network, so there is one data
	// root, and the pipeline keeps 16 verified participant sets of one.
	traceSlot wire.Slot = 1
	// traceGenesis is Unix seconds; any time will do, the clock is ours.
	traceGenesis      = 1_790_000_000
	traceSlotDuration = 4 * time.Second

	traceAggregates = 16
	// Aggregate i covers the validators from i*traceStride on, traceWidth of them, around the end: half of the registry
	// each, and none within another, which the pipeline would not check.
	traceWidth  = devkeys.Validators / 2
	traceStride = devkeys.Validators / traceAggregates
)

// network is the registry and the chain of the trace.
type network struct {
	profile     *wire.Profile
	registry    *pubkeycache.Registry
	genesisRoot wire.Root
	data        wire.AttestationData // what all validators vote for
}

// traceNetwork makes the network of the embedded keys. Its votes are for the genesis block.
func traceNetwork() (*network, error) {
	profile, err := wire.LookupProfile(traceProfile, "")
	if err != nil {
		return nil, err
	}
	scheme, err := xmss.SchemeByName(profile.Scheme)
	if err != nil {
		return nil, err
	}
	attestation, proposal, err := devkeys.Load(profile.Scheme)
	if err != nil {
		return nil, err
	}
	validators := make([]wire.Validator, len(attestation))
	for i := range validators {
		validators[i] = wire.Validator{
			Index: wire.ValidatorIndex(i), AttestationKey: attestation[i].PublicKey[:], ProposalKey: proposal[i].PublicKey[:],
		}
	}
	n := &network{profile: profile}
	if n.registry, err = pubkeycache.NewRegistry(scheme, validators); err != nil {
		return nil, err
	}
	if _, n.genesisRoot, err = profile.GenesisBlock(traceGenesis, validators); err != nil {
		return nil, err
	}
	genesis := wire.Checkpoint{Root: n.genesisRoot}
	n.data = wire.AttestationData{Slot: traceSlot, Head: genesis, Target: genesis, Source: genesis}
	return n, nil
}

// window returns the participants of aggregate i.
func window(i int) (wire.Participants, error) {
	indices := make([]wire.ValidatorIndex, traceWidth)
	for k := range indices {
		indices[k] = wire.ValidatorIndex((i*traceStride + k) % devkeys.Validators)
	}
	return wire.NewParticipants(indices)
}

// message is one gossip message of the trace.
type message struct {
	topic wire.Topic
	data  []byte // compressed
}

// trace is the recorded slot. Immutable.
type trace struct {
	*network
	votes      []message
	aggregates []message
	raw        []prover.Raw   // the signatures of the votes, in order
	children   []prover.Child // the aggregates, in order
}

// loadTrace reads the embedded trace.
func loadTrace() (*trace, error) {
	b, err := traceFiles.ReadFile(traceFile)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return readTrace(b)
}

// readTrace decodes a trace and holds it to what the measurements rely on.
func readTrace(b []byte) (*trace, error) {
	n, err := traceNetwork()
	if err != nil {
		return nil, err
	}
	t := &trace{network: n}
	r, err := NewCaptureReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if h := r.Header(); h.Profile != n.profile.Name || h.Scheme != n.profile.Scheme {
		return nil, fmt.Errorf("read trace: it is of profile %s and scheme %s, must be %s and %s", h.Profile, h.Scheme, n.profile.Name, n.profile.Scheme)
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = t.add(r.Header().Network, record)
		}
		if err != nil {
			return nil, fmt.Errorf("read trace: %w", err)
		}
	}
	if len(t.votes) != devkeys.Validators || len(t.aggregates) != traceAggregates {
		return nil, fmt.Errorf("read trace: %d votes and %d aggregates, must be %d and %d", len(t.votes), len(t.aggregates), devkeys.Validators, traceAggregates)
	}
	return t, nil
}

// add takes one message in.
func (t *trace) add(networkName string, r CaptureRecord) error {
	topic, err := wire.ParseTopic(networkName, r.Topic)
	if err != nil {
		return err
	}
	payload, err := wire.Decompress(r.Message, wire.MaxPayloadSize)
	if err != nil {
		return err
	}
	m := message{topic: topic, data: r.Message}
	switch topic.Kind {
	case wire.TopicAttestation:
		a, err := t.profile.DecodeAttestation(payload)
		if err != nil {
			return err
		}
		key, ok := t.registry.AttestationKey(a.ValidatorIndex)
		if !ok || a.Data != t.data {
			return fmt.Errorf("vote of validator %d is not of this network", a.ValidatorIndex)
		}
		t.votes = append(t.votes, m)
		t.raw = append(t.raw, prover.Raw{PublicKey: key[:], Signature: a.Signature})
	case wire.TopicAggregation:
		a, err := t.profile.DecodeAggregate(payload)
		if err != nil {
			return err
		}
		claim, err := t.claim(a.Participants)
		if err != nil || a.Data != t.data {
			return errors.Join(errors.New("aggregate is not of this network"), err)
		}
		t.aggregates = append(t.aggregates, m)
		t.children = append(t.children, prover.Child{Claim: claim, Proof: a.Proof})
	case wire.TopicBlock, wire.TopicUnknown:
		return fmt.Errorf("topic %s is not of a trace", r.Topic)
	}
	return nil
}

// claim returns what a proof over the participants asserts.
func (n *network) claim(p wire.Participants) (prover.Claim, error) {
	var keys [][]byte
	for _, v := range p.Indices() {
		key, ok := n.registry.AttestationKey(v)
		if !ok {
			return prover.Claim{}, fmt.Errorf("no validator %d", v)
		}
		keys = append(keys, key[:])
	}
	return prover.Claim{Message: n.data.HashTreeRoot(), Epoch: uint32(traceSlot), SignerSet: prover.NewSignerSet(keys)}, nil
}

// job returns a job of the first raw votes and the first children aggregates.
func (t *trace) job(raw, children int) prover.Job {
	return prover.Job{Message: t.data.HashTreeRoot(), Epoch: uint32(traceSlot), Raw: t.raw[:raw], Children: t.children[:children]}
}
