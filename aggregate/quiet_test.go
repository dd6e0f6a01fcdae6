package aggregate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheQuietPeriodFollowsTheRhythmOfTheVotes(t *testing.T) {
	t.Parallel()
	const interval = 2400 * time.Millisecond
	start := time.Unix(1000, 0)
	w := watch{times: times{votes: start, boundary: start.Add(interval)}}
	for _, c := range []struct {
		name  string
		votes int
		span  time.Duration // from the first to the newest vote
		want  time.Duration
	}{
		{"no vote", 0, 0, quietPeriod},
		{"one vote", 1, 0, quietPeriod},
		{"a burst", 700, 90 * time.Millisecond, quietPeriod},
		{"slow signers", 3, 400 * time.Millisecond, 400 * time.Millisecond},
		{"very slow signers", 3, 2 * time.Second, interval / quietShare},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := Progress{Votes: c.votes}
			if c.votes > 0 {
				p.FirstAdded, p.LastAdded = start, start.Add(c.span)
			}
			require.Equal(t, c.want, w.quiet(p))
		})
	}
}
