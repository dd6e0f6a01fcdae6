package prover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// restFloor is the least that counts as too much memory at rest, in bytes: a restart would win too little.
	restFloor = 256 * mebibyte
	// restProofs is after how many heavy proofs in a row a child is replaced. One may have been caught before it gave its
	// memory back; lean-pq 0.7.0 holds 210 to 275 MiB when the proof is in our hands.
	restProofs = 2
	// restLook is how long a heavy child that nobody can stand in for must have had nothing to do.
	restLook = 2 * time.Second
	// recycleEvery spaces replacements. A backend that keeps its memory by design must not be set up after every job.
	recycleEvery = 5 * time.Minute

	// spareFactor is how many peaks of a job must be available for a spare prover: one for the job that runs, one for
	// the spare's own set-up and measured proof and for what the rest of the machine takes meanwhile.
	spareFactor = 2
	// spareLook is how often a prover without the memory for a spare looks again.
	spareLook = time.Minute
)

// errRecycled is the fault of a prover that was replaced because its memory did not come back.
var errRecycled = errors.New("memory did not come back after proofs")

// restLimit is what a prover may hold after a proof, in bytes.
func (c *Config) restLimit(caps *Capabilities) int64 {
	return cmp.Or(c.RestMemory, max(caps.SetupMemory+caps.ProveMemory, restFloor))
}

// weigh looks at what a prover holds after a proof and replaces it where a spare can stand in at once; attend does it
// where none can.
func (c *Client) weigh(p *process) {
	held := residentMemory(p.pid)
	c.metrics.resident.Set(float64(held))
	if held <= c.cfg.restLimit(&p.caps) {
		p.heavy.Store(0)
		return
	}
	if p.heavy.Add(1) >= restProofs && c.hasSpareFor(p) {
		c.recycle(p)
	}
}

// recycle takes a heavy prover out of use, unless one was a short while ago or it has a job.
func (c *Client) recycle(p *process) {
	c.mu.Lock()
	isTooSoon := !c.recycledAt.IsZero() && time.Since(c.recycledAt) < recycleEvery
	c.mu.Unlock()
	if isTooSoon {
		return
	}
	err := fmt.Errorf("%w: it holds %d MiB, at rest it should hold at most %d MiB",
		errRecycled, residentMemory(p.pid)/mebibyte, c.cfg.restLimit(&p.caps)/mebibyte)
	if p.retire(err) {
		c.mu.Lock()
		c.recycledAt = time.Now()
		c.mu.Unlock()
	}
}

// attend waits until a child is reaped, and ends it with ctx. A heavy prover without a spare is replaced when it has had
// nothing to do for a while.
func (c *Client) attend(ctx context.Context, p *process) {
	var look <-chan time.Time
	if c.cfg.Role == RoleProve {
		tick := time.NewTicker(restLook)
		defer tick.Stop()
		look = tick.C
	}
	wasIdle := false
	for {
		select {
		case <-p.done:
			return
		case <-ctx.Done():
			p.shutdown()
			<-p.done
			return
		case <-look:
			n, _ := p.running()
			if wasIdle && n == 0 && p.heavy.Load() >= restProofs {
				c.recycle(p)
			}
			wasIdle = n == 0
		}
	}
}

// hasSpareFor says whether another child could take over.
func (c *Client) hasSpareFor(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.ready {
		if q != p && !q.isDying() {
			return true
		}
	}
	return false
}

// mayStart waits until a child may be started; false when ctx ended. The spare comes after the first: two set-ups at
// once delay both. A prover beside another one is started only where the memory for it is there.
func (c *Client) mayStart(ctx context.Context, isSpare bool) bool {
	var look <-chan time.Time
	for ctx.Err() == nil {
		c.mu.Lock()
		changed, serves, need := c.changed, c.servingLocked() != nil, c.cfg.need(&c.caps)
		c.mu.Unlock()
		switch {
		case !serves && !isSpare, serves && c.cfg.Role == RoleVerify, serves && c.mayHaveSpare(need):
			return true
		case serves && look == nil:
			tick := time.NewTicker(spareLook)
			defer tick.Stop()
			look = tick.C
		}
		select {
		case <-changed:
		case <-look:
		case <-ctx.Done():
		}
	}
	return false
}

// mayHaveSpare says whether there is memory for a second prover that needs so many bytes at its peak, and notes it.
func (c *Client) mayHaveSpare(need int64) bool {
	have, why := c.cfg.Available(), ""
	if c.cfg.MemoryMax > 0 { // which may hold for all provers together: a control group counts them as one
		have = min(have, c.cfg.MemoryMax)
	}
	if have < spareFactor*need {
		why = fmt.Sprintf("no warm spare: %d MiB of memory available, wanted %d MiB", have/mebibyte, spareFactor*need/mebibyte)
	}
	c.mu.Lock()
	isNews := (c.noSpare == "") != (why == "")
	c.noSpare = why
	c.mu.Unlock()
	if isNews && why != "" {
		c.cfg.Logger.Info(why, "role", c.cfg.Role.String())
	}
	return why == ""
}
