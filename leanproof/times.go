package leanproof

import (
	"context"
	"time"
)

// StageTimes is what each stage of a check took, by Stage. StageTable has both evaluations of the guest's table where a proof
// needs two.
type StageTimes [stages]time.Duration

// Time checks a proof as Check does and says what each stage took. The clock is read between stages only.
func (v *Verifier) Time(ctx context.Context, proof []byte) (StageTimes, error) {
	c := v.take()
	defer v.put(c)
	w := stopwatch{last: time.Now()}
	c.times = &w
	c.begin(proof, nil)
	v.run(ctx, []*check{c})
	c.times = nil
	return w.times, c.err
}

// stopwatch gives the time since it was last looked at to a stage.
type stopwatch struct {
	last  time.Time
	times StageTimes
}

// lap ends a stage. It does nothing on a nil stopwatch.
func (w *stopwatch) lap(s Stage) {
	if w == nil {
		return
	}
	now := time.Now()
	w.times[s] += now.Sub(w.last)
	w.last = now
}
