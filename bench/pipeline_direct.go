package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"aggnode/pipeline"
	"aggnode/wire"
)

// directInFlight is how many votes are on their way at once without a network: batches of 16 for a few workers, and more
// that wait than those take.
const directInFlight = 128

// cost is what some votes took of this process.
type cost struct {
	cpu, wall time.Duration
	allocs    uint64
}

// meter measures from newMeter to stop, on a heap that was just collected, so that nothing pays for the garbage of what ran
// before.
type meter struct {
	began  time.Time
	cpu    time.Duration
	allocs uint64
}

func newMeter() *meter {
	runtime.GC()
	return &meter{allocs: mallocs(), cpu: ownCPU(), began: time.Now()}
}

func (m *meter) stop() cost {
	c := cost{cpu: ownCPU() - m.cpu, wall: time.Since(m.began)}
	c.allocs = mallocs() - m.allocs
	return c
}

// mallocs returns the number of objects that this process has allocated.
func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

// feedDirect sends the votes of each pass after those of the one before, from bytes to verdict and as fast as verdicts come.
// What gossip would do, message id and decompression, is done by the goroutine of the vote.
func (p *passes) feedDirect(ctx context.Context, v *slotVotes) cost {
	topics := make([]string, len(p.pipes))
	for pass := range topics {
		topics[pass] = voteTopic(pass)
	}
	m := newMeter()
	p.feed(func(pass, i int) {
		_ = wire.MessageID(topics[pass], v.messages[i])
		if item := p.screen(pass, v.messages[i]); item != nil {
			p.Submit(ctx, item)
		}
	})
	return m.stop()
}

// feedScreened sends votes that went through stage 1 before, so that the queue, its facts and the verdicts are left.
func (p *passes) feedScreened(ctx context.Context, v *slotVotes) (cost, error) {
	items := make([]*pipeline.Item, len(p.ends))
	for place := range items {
		items[place] = p.screen(place/p.each, v.messages[place%p.each])
		if items[place] == nil {
			return cost{}, fmt.Errorf("stage 1 refused vote %d of pass %d", place%p.each, place/p.each)
		}
	}
	m := newMeter()
	p.feed(func(pass, i int) { p.Submit(ctx, items[pass*p.each+i]) })
	return m.stop(), nil
}

// screen decompresses a message and takes it through stage 1; nil where that said no.
func (p *passes) screen(pass int, message []byte) *pipeline.Item {
	payload, err := wire.Decompress(message, wire.MaxPayloadSize)
	if err != nil {
		payload = nil // refused as malformed, as in package p2p
	}
	item, _ := p.Screen(wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetID(pass)}, "sender", payload)
	return item
}

// feed calls do for every vote, one pass after the other, in directInFlight goroutines.
func (p *passes) feed(do func(pass, i int)) {
	var next atomic.Int64
	var flights sync.WaitGroup
	for range directInFlight {
		flights.Go(func() {
			for place := int(next.Add(1)) - 1; place < len(p.ends); place = int(next.Add(1)) - 1 {
				do(place/p.each, place%p.each)
			}
		})
	}
	flights.Wait()
}

// allValid takes every signature for valid: it stands where the verifier does when the queue is measured alone. Only votes
// are sent.
type allValid struct{ attestationChecker }

func (allValid) Attestations(_ context.Context, batch []*wire.SignedAttestation, out []wire.Reason) {
	clear(out[:len(batch)]) // ReasonNone
}
