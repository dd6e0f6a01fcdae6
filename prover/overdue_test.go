package prover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnOverdueJobIsKilledForItsCPUAndNotForWaiting(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	job := &Job{Overdue: start.Add(2 * time.Second), CPUMax: 3 * time.Second}
	const before = 40 * time.Second // CPU of the process before the job
	type look struct {
		after   time.Duration
		cpu     time.Duration // of the job
		overdue bool
	}
	for _, c := range []struct {
		name  string
		job   *Job
		looks []look
	}{
		{"a starved job goes on", job, []look{{0, 0, false}, {2 * time.Second, time.Second, false}, {20 * time.Second, 2900 * time.Millisecond, false}}},
		{"a spinning job ends when it is overdue, not before", job, []look{{0, 0, false}, {1900 * time.Millisecond, 3800 * time.Millisecond, false}, {2 * time.Second, 4 * time.Second, true}}},
		{"a starved job that spins ends once it had its CPU", job, []look{{0, 0, false}, {9 * time.Second, 2 * time.Second, false}, {14 * time.Second, 3 * time.Second, true}}},
		{"no limits of its own", &Job{}, []look{{0, 0, false}, {time.Hour, time.Hour, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := stuckWatch{limit: time.Hour, since: start}
			require.False(t, w.isOverdue(start, 0, c.job), "no frame yet")
			for _, l := range c.looks {
				require.Equal(t, l.overdue, w.isOverdue(start.Add(l.after), before+l.cpu, c.job), "after %v with %v", l.after, l.cpu)
			}
		})
	}
}
