package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMetersTellWaitChecksAndTheLargerSlowdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		var m Meters
		require.Equal(t, Signals{Slowdown: 1, Interval: 3}, m.Signals(3))
		m.Votes(4*ms, 2*ms, 2*ms)
		m.Aggregate(30 * ms)
		require.Equal(t, Signals{QueueWaitP99: 4 * ms, CheckP99: 30 * ms, Slowdown: 1, Interval: 2}, m.Signals(2))
		m.Proof(27*ms, 15*ms)
		require.InDelta(t, 1.8, m.Signals(2).Slowdown, 1e-9, "a slowed proof does not hide behind votes that were not")
		m.Votes(0, 4*ms, 1*ms)
		require.InDelta(t, 2, m.Signals(2).Slowdown, 1e-9, "nor the other way round")
		m.Proof(0, 0)
		m.Proof(5*ms, 0)
		require.InDelta(t, 2, m.Signals(2).Slowdown, 1e-9, "a check that told no time is left out")
	})
}
