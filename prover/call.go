package prover

import (
	"context"
	"fmt"
	"time"
)

// begin sends a request and registers it; body began with newBody and belongs to begin from here. With timeout above
// zero the process kills itself when the answer takes longer, counted anew from the started frame; this holds also after
// the caller left.
func (p *process) begin(ctx context.Context, k kind, body []byte, timeout time.Duration, useSlot bool) (*call, error) {
	if useSlot {
		select {
		case p.slots <- struct{}{}:
		case <-p.dying:
			return nil, p.cause()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c := &call{kind: k, began: time.Now(), started: make(chan struct{}), reply: make(chan frame, 1), slot: useSlot, isOpen: true}
	p.mu.Lock()
	if p.fault != nil { // a call that joins after the fault must not count as one that may have caused it
		p.mu.Unlock()
		if useSlot {
			<-p.slots
		}
		return nil, p.cause()
	}
	p.nextID++
	c.id = p.nextID
	if timeout > 0 {
		c.timer = time.AfterFunc(timeout, func() {
			p.kill(&callTimeoutError{id: c.id, kind: k, after: timeout})
		})
	}
	p.calls[c.id] = c
	p.mu.Unlock()

	seal(body, k, c.id)
	select {
	case p.outbox <- body:
		return c, nil
	case <-p.dying:
		p.drop(c)
		return nil, p.cause()
	case <-ctx.Done():
		p.drop(c)
		return nil, ctx.Err()
	}
}

// callTimeoutError names the call at fault, so that the others in flight know that it was not them.
type callTimeoutError struct {
	id    uint64
	kind  kind
	after time.Duration
}

func (e *callTimeoutError) Error() string {
	return fmt.Sprintf("no answer to %s within %s", e.kind, e.after)
}

func (e *callTimeoutError) Is(target error) bool { return target == ErrTimeout }

// wait returns the answer. A caller whose ctx ends leaves the call registered: its slot stays taken and its timer runs
// until the child answers or is killed for not answering.
func (p *process) wait(ctx context.Context, c *call) (frame, error) {
	select {
	case f := <-c.reply:
		return f, nil
	default:
	}
	select {
	case f := <-c.reply:
		return f, nil
	case <-p.dying:
		select {
		case f := <-c.reply: // it came first
			return f, nil
		default:
			return frame{}, p.cause()
		}
	case <-ctx.Done():
		return frame{}, ctx.Err()
	}
}

// roundTrip is begin and wait.
func (p *process) roundTrip(ctx context.Context, k kind, body []byte, timeout time.Duration) (frame, error) {
	c, err := p.begin(ctx, k, body, timeout, false)
	if err != nil {
		return frame{}, err
	}
	return p.wait(ctx, c)
}

// answers lists which kinds may answer a request.
func (k kind) answers(request kind) bool {
	switch request {
	case kindHello:
		return k == kindReady || k == kindError
	case kindPing:
		return k == kindPong
	case kindProve, kindVerify, kindInspect:
		return k == kindResult || k == kindError
	case kindSample:
		return k == kindSamples || k == kindError
	case kindBye:
		return k == kindGone
	}
	return false
}

// deliver hands a frame to the call that it belongs to. An error is a fault of the child.
func (p *process) deliver(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[f.id]
	if c == nil {
		return fmt.Errorf("%w: %s for call %d, which is not open", errFrame, f.kind, f.id)
	}
	switch {
	case f.kind == kindStarted:
		if !c.isOpen {
			return fmt.Errorf("%w: second started for call %d", errFrame, f.id)
		}
		c.isOpen, c.wait = false, time.Since(c.began)
		close(c.started)
		if c.timer != nil && c.timer.Stop() {
			c.timer.Reset(p.cfg.CallTimeout)
		}
	case f.kind == kindProgress:
		pr, err := decodeProgress(f.body)
		if err != nil {
			return err
		}
		c.cpu.Store(int64(pr.cpu))
	case f.kind.answers(c.kind):
		p.closeLocked(c)
		c.reply <- f
	default:
		return fmt.Errorf("%w: %s does not answer %s", errFrame, f.kind, c.kind)
	}
	return nil
}

func (p *process) closeLocked(c *call) {
	delete(p.calls, c.id)
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.slot {
		<-p.slots
	}
}

// drop forgets a call that was never sent.
func (p *process) drop(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c.id] == c {
		p.closeLocked(c)
	}
}

// endCalls stops the timers of what is still open when the process is gone.
func (p *process) endCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	clear(p.calls)
}

// running returns the number of calls in flight and when the oldest began.
func (p *process) running() (int, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest time.Time
	for _, c := range p.calls {
		if oldest.IsZero() || c.began.Before(oldest) {
			oldest = c.began
		}
	}
	return len(p.calls), oldest
}
