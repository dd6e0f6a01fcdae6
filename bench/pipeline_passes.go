package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"aggnode/chain"
	"aggnode/pipeline"
	"aggnode/pubkeycache"
	"aggnode/scheduler"
	"aggnode/verify"
	"aggnode/wire"
)

// attestationChecker is what a pipeline asks. verify.Verifier is one.
type attestationChecker interface {
	Attestations(ctx context.Context, batch []*wire.SignedAttestation, out []wire.Reason)
	Aggregates(ctx context.Context, batch []*wire.SignedAggregate, out []wire.Reason)
	Block(ctx context.Context, b *wire.SignedBlock) wire.Reason
}

// newVoteVerifier makes the verifier that all passes share, as a node's slots do: after the first pass it knows the upper
// part of every key, which in a network is so in 511 slots of 512.
func newVoteVerifier(v *slotVotes) (*verify.Verifier, error) {
	cache, err := pubkeycache.New(pubkeycache.Config{}, v.registry, nil)
	if err != nil {
		return nil, err
	}
	return verify.New(verify.Config{Profile: v.profile, NoProofs: true}, v.registry, cache, nil)
}

// passes let the votes of one slot come several times. A pipeline would call the second copy a duplicate, and so would
// gossip, whose message id holds the topic: so each pass has a topic and a pipeline of its own. To package p2p the passes
// look like one intake of a node that takes part in as many subnets. The votes of a pass may come in any order and mix with
// those of the next. Safe for concurrent use.
type passes struct {
	// immutable
	clock *chain.Clock
	pipes []*pipeline.Pipeline
	each  int           // votes of a pass
	all   chan struct{} // closed when every vote was accepted

	began time.Time

	// One for each vote of each pass, written by the goroutine that holds the vote when it was accepted.
	waits []time.Duration // from stage 1 to the verdict
	ends  []time.Duration // from began to the verdict; 0: there was none

	accepted atomic.Int64
	checks   atomic.Int64 // of batches
	running  sync.WaitGroup
	cancel   context.CancelFunc

	mu   sync.Mutex
	lost map[wire.Reason]int // guarded by mu
}

// voteSlotDuration is that of networks whose slots leave time for proofs on two cores. The window of a slot's votes is then
// wide enough for a stream.
const voteSlotDuration = 8 * time.Second

// voteClock returns a clock that stands at interval 1 of the votes' slot now. It reads the system's clock as the node's does.
func voteClock() *chain.Clock {
	into := time.Duration(traceSlot)*voteSlotDuration + voteSlotDuration/wire.IntervalsPerSlot
	return chain.NewClock(time.Now().Add(-into), voteSlotDuration, nil)
}

// startPasses starts n pipelines over a clock that stands in the votes' slot now. The caller calls stop.
func startPasses(ctx context.Context, v *slotVotes, n, workers int, checker attestationChecker) (*passes, error) {
	p := &passes{
		clock: voteClock(), each: len(v.messages), all: make(chan struct{}), lost: make(map[wire.Reason]int),
		waits: make([]time.Duration, n*len(v.messages)), ends: make([]time.Duration, n*len(v.messages)),
		began: time.Now(),
	}
	// The tree holds genesis, for which all vote.
	tree, err := chain.NewTree(chain.Config{Profile: v.profile, Validators: v.registry.Len(), GenesisRoot: v.genesisRoot}, p.clock)
	if err != nil {
		return nil, err
	}
	for range n {
		pipe, err := pipeline.New(pipeline.Config{
			Profile: v.profile, Validators: v.registry.Len(), Network: wire.DefaultNetwork,
			Committees: 1, Subnets: []wire.SubnetID{0}, Workers: workers, SlotDuration: voteSlotDuration,
			OnWork: func(pipeline.Work) { p.checks.Add(1) }, ThreadCPU: scheduler.ThreadCPU,
		}, p.clock, checker, tree, sink{})
		if err != nil {
			return nil, err
		}
		p.pipes = append(p.pipes, pipe)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	for _, pipe := range p.pipes {
		p.running.Go(func() { _ = pipe.Run(ctx) }) // it ends with its context; only a second Run fails
	}
	return p, nil
}

// stop ends the pipelines.
func (p *passes) stop() {
	p.cancel()
	p.running.Wait()
}

// Screen is stage 1 in the pipeline of the topic's pass.
func (p *passes) Screen(topic wire.Topic, peer string, payload []byte) (*pipeline.Item, pipeline.Outcome) {
	pass := int(topic.Subnet)
	if topic.Kind != wire.TopicAttestation || pass >= len(p.pipes) {
		out := pipeline.Outcome{Verdict: pipeline.Ignore, Reason: wire.ReasonWrongSubnet}
		p.lose(out.Reason)
		return nil, out
	}
	item, out := p.pipes[pass].Screen(wire.Topic{Kind: wire.TopicAttestation}, peer, payload)
	if item == nil {
		p.lose(out.Reason)
		return nil, out
	}
	item.Subnet = topic.Subnet // for Submit; the pipeline itself has looked at it already
	return item, out
}

// Enqueue is the end of stage 1.
func (p *passes) Enqueue(ctx context.Context, item *pipeline.Item) {
	p.pipes[item.Subnet].Enqueue(ctx, item)
}

// Submit is stage 2.
func (p *passes) Submit(ctx context.Context, item *pipeline.Item) pipeline.Outcome {
	pass := int(item.Subnet)
	out := p.pipes[pass].Submit(ctx, item)
	if out.Verdict != pipeline.Accept {
		p.lose(out.Reason)
		return out
	}
	place := pass*p.each + int(item.Attestation.ValidatorIndex)
	end := time.Now()
	p.ends[place], p.waits[place] = end.Sub(p.began), end.Sub(item.Arrival)
	if p.accepted.Add(1) == int64(len(p.ends)) {
		close(p.all)
	}
	return out
}

func (p *passes) lose(r wire.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost[r]++
}

// PeerScore is for the judge of peers in package p2p: nobody is judged here.
func (*passes) PeerScore(string) pipeline.PeerScore { return pipeline.PeerScore{} }

// Limits are those of one pass: gossip sizes its throttles for each topic by them.
func (p *passes) Limits() pipeline.Limits { return p.pipes[0].Limits() }

// verdicts returns the times from stage 1 to the verdict of all accepted votes in ascending order. Call it when no vote is
// on its way.
func (p *passes) verdicts() []time.Duration {
	var waits []time.Duration
	for place, end := range p.ends {
		if end != 0 {
			waits = append(waits, p.waits[place])
		}
	}
	return pool(waits)
}

// batch is the mean number of votes that were checked together.
func (p *passes) batch() float64 { return ratio(float64(p.accepted.Load()), float64(p.checks.Load())) }

// delays returns, likewise, the times from when each vote was due to its verdict.
func (p *passes) delays(begin time.Time, rate int) []time.Duration {
	var delays []time.Duration
	for place, end := range p.ends {
		if end != 0 {
			delays = append(delays, p.began.Add(end).Sub(begin.Add(atRate(place, rate))))
		}
	}
	return pool(delays)
}
