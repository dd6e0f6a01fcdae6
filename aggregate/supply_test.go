package aggregate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyTimeWithWorkAndWithoutAProofIsIdle(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(100, 0).Add(time.Duration(ms) * time.Millisecond) }
	const ms = time.Millisecond
	var s supply
	require.Zero(t, s.idle(at(0)), "nothing to prove")
	s.want(at(10))
	s.want(at(40)) // the first counts
	require.Equal(t, 5*ms, s.idle(at(15)))
	require.Equal(t, 15*ms, s.idle(at(30)))
	require.Zero(t, s.idle(at(20)), "a clock that steps back")
	require.Equal(t, 2*ms, s.done(at(32)), "the prover has the job")
	require.Zero(t, s.idle(at(700)))
	s.free = at(800)
	s.want(at(500)) // due while the prover was busy
	require.Equal(t, 3*ms, s.done(at(803)))
	s.want(at(900))
	require.Equal(t, 50*ms, s.done(at(950)), "the work is gone")
	require.Zero(t, s.done(at(999)))
}

func TestTheBusyRatioIsOverTheLastSlots(t *testing.T) {
	t.Parallel()
	var s supply
	_, ok := s.next()
	require.False(t, ok, "nothing to prove yet")
	start := time.Unix(100, 0)
	s.want(start)
	s.done(start.Add(time.Second))
	s.proved(&proof{wall: 3 * time.Second, ended: start.Add(4 * time.Second)})
	for range ratioSlots {
		ratio, ok := s.next()
		require.True(t, ok)
		require.InDelta(t, 0.75, ratio, 1e-9)
	}
	_, ok = s.next()
	require.False(t, ok, "too long ago")
}
