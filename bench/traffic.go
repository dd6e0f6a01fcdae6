package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"aggnode/wire"
)

// What is sent. A network of 4 s slots whose aggregators publish 16 aggregates and whose subnet has 64 validators sends
// less than a tenth of it: the checks are the load that the issue of the budget is about, not an average.
const (
	voteEvery      = 5 * time.Millisecond  // 200 votes a second
	aggregateEvery = 50 * time.Millisecond // 20 aggregates a second
	burstSize      = 10
	burstEvery     = burstSize * aggregateEvery // the same rate
	// aggregateLag keeps aggregates off the moments at which passes turn: a burst over two pipelines would have the
	// workers of both.
	aggregateLag = aggregateEvery / 2

	// votesPerPass makes a pass of a quarter of a second: fewer votes than the trace has, so that none comes twice to one
	// pipeline, and at most 10 of its 16 aggregates.
	votesPerPass = 50

	// tracePeers are the peers that deliver the aggregates in turn: a pipeline takes only 4 waiting ones of each.
	tracePeers = 8
)

// pattern is how aggregates are sent.
type pattern struct {
	size  int           // aggregates at once
	every time.Duration // from one time to the next
}

var (
	oneAtATime = pattern{1, aggregateEvery}
	inBursts   = pattern{burstSize, burstEvery}
)

// traffic is what one part of a phase sent. The passages are complete once run has returned.
type traffic struct {
	begin, end time.Time
	aggregates []*passage
	votes      []*passage
	late       int // aggregates that were sent late because the one before had no verdict yet
}

// send lets votes and aggregates run for a time and returns when all have their verdicts.
func (r *rig) send(ctx context.Context, how pattern, length time.Duration) (*traffic, error) {
	l, err := r.newLoop(ctx)
	if err != nil {
		return nil, err
	}
	t := &traffic{
		begin:      time.Now(),
		aggregates: make([]*passage, 0, int(length/how.every+1)*how.size),
		votes:      make([]*passage, 0, int(length/voteEvery)+1),
	}
	var senders, flights sync.WaitGroup
	senders.Go(func() { r.sendVotes(ctx, l, t, length, &flights) })
	senders.Go(func() { r.sendAggregates(ctx, l, t, how, length, &flights) })
	senders.Wait()
	flights.Wait()
	if err := l.close(); err != nil {
		return nil, err
	}
	t.end = time.Now()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

// sendVotes sends a vote at each due time, whatever became of the ones before, and turns the passes.
func (r *rig) sendVotes(ctx context.Context, l *loop, t *traffic, length time.Duration, flights *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := 0; time.Duration(i)*voteEvery < length; i++ {
		due := t.begin.Add(time.Duration(i) * voteEvery)
		if !waitUntil(ctx, timer, due) {
			return
		}
		if i > 0 && i%votesPerPass == 0 {
			l.turn()
		}
		m := &r.trace.votes[i%len(r.trace.votes)]
		s := &passage{due: due, arrived: time.Now()}
		t.votes = append(t.votes, s)
		p := l.enter()
		flights.Go(func() { r.deliver(ctx, p, m, "voter", s) })
		if i%votesPerPass == votesPerPass/2 {
			l.prepare(ctx)
		}
	}
}

// sendAggregates sends one, or a burst, at each due time. Single ones wait for each other.
func (r *rig) sendAggregates(ctx context.Context, l *loop, t *traffic, how pattern, length time.Duration, flights *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	sent := 0
	for i := 0; time.Duration(i)*how.every < length; i++ {
		due := t.begin.Add(aggregateLag + time.Duration(i)*how.every)
		isLate := i > 0 && time.Until(due) < 0
		if !waitUntil(ctx, timer, due) || time.Since(t.begin) >= length {
			return
		}
		if isLate {
			t.late++
		}
		for range how.size {
			m := &r.trace.aggregates[sent%len(r.trace.aggregates)]
			peer := fmt.Sprintf("aggregator-%d", sent%tracePeers)
			sent++
			s := &passage{due: due, arrived: time.Now()}
			t.aggregates = append(t.aggregates, s)
			p := l.enter()
			if how.size == 1 {
				r.deliver(ctx, p, m, peer, s)
				continue
			}
			flights.Go(func() { r.deliver(ctx, p, m, peer, s) })
		}
	}
}

// deliver takes one message the way of gossip, from its compressed bytes to its verdict.
func (r *rig) deliver(ctx context.Context, p *pass, m *message, peer string, s *passage) {
	defer p.inFlight.Done()
	payload, err := wire.Decompress(m.data, wire.MaxPayloadSize)
	if err != nil {
		s.reason, s.ended = wire.ReasonMalformed, time.Now()
		return
	}
	it, out := p.pipe.Screen(m.topic, peer, payload)
	s.decoded = time.Now()
	if it != nil {
		if it.Aggregate != nil {
			r.probe.waiting.Store(it.Aggregate, s)
			defer r.probe.waiting.Delete(it.Aggregate)
		}
		out = p.pipe.Submit(ctx, it)
	}
	s.reason, s.ended = out.Reason, time.Now()
}

// waitUntil sleeps until a time; false when ctx ended first. A time that has passed returns at once.
func waitUntil(ctx context.Context, timer *time.Timer, due time.Time) bool {
	if d := time.Until(due); d > 0 {
		timer.Reset(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
