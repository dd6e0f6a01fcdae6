package p2p

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"
)

var dawn = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func TestJudgement(t *testing.T) {
	t.Parallel()
	const slot = 4 * time.Second
	tests := map[string]struct {
		rejected, verified int
		connectedFor       time.Duration
		strikes            int
		want               cause
	}{
		"silent":                          {want: causeUnknown, connectedFor: time.Hour},
		"verified only":                   {verified: 1, connectedFor: time.Hour, want: causeUnknown},
		"honest relay of a forger":        {rejected: 100, verified: 1, connectedFor: time.Hour, want: causeUnknown},
		"forger":                          {rejected: 1, connectedFor: 2 * slot, want: causeRejects},
		"new neighbour":                   {rejected: 1, connectedFor: 2*slot - 1, want: causeUnknown},
		"forger that comes back":          {rejected: 1, strikes: 1, want: causeRejects},
		"reformed, verifies now":          {rejected: 1, verified: 1, strikes: 1, want: causeUnknown},
		"came back, relays nothing wrong": {strikes: 3, want: causeUnknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPeerBook(slot)
			for range tt.strikes {
				b.strike(somePeer, dawn)
			}
			b.connect(somePeer, dawn)
			require.Equal(t, tt.want, b.judge(somePeer, tt.rejected, tt.verified, false, dawn.Add(tt.connectedFor)))
		})
	}
}

func TestSlowPeerGoesAfterLossesInARow(t *testing.T) {
	t.Parallel()
	b := newPeerBook(4 * time.Second)
	b.connect(somePeer, dawn)
	for range slowRounds - 1 {
		require.Equal(t, causeUnknown, b.judge(somePeer, 0, 0, true, dawn))
	}
	require.Equal(t, causeUnknown, b.judge(somePeer, 0, 0, false, dawn), "one round without a loss starts anew")
	for range slowRounds - 1 {
		require.Equal(t, causeUnknown, b.judge(somePeer, 0, 9, true, dawn))
	}
	require.Equal(t, causeSlow, b.judge(somePeer, 0, 9, true, dawn), "whatever it delivers")
	// At the rhythm of two a slot that is well within a minute at 4 s and 8 s.
	require.Less(t, slowRounds*4*time.Second, time.Minute)
}

func TestFaultsCountWithinTheWindow(t *testing.T) {
	t.Parallel()
	b := newPeerBook(4 * time.Second)
	now := dawn
	for range 20 { // one each nine seconds: never two in a window of eight
		now = now.Add(9 * time.Second)
		require.False(t, b.fault(somePeer, now))
	}
	for range maxFaults - 2 {
		require.False(t, b.fault(somePeer, now.Add(time.Millisecond)))
	}
	require.True(t, b.fault(somePeer, now.Add(2*time.Millisecond)))
}

func TestBackoffGrowsAndDecays(t *testing.T) {
	t.Parallel()
	b := newPeerBook(4 * time.Second)
	require.False(t, b.inBackoff(somePeer, dawn))
	now := dawn
	for _, want := range []time.Duration{12, 24, 48, 96, 192, 384, 600, 600, 600} {
		require.Equal(t, want*time.Second, b.strike(somePeer, now))
	}
	require.True(t, b.inBackoff(somePeer, now.Add(600*time.Second-1)))
	require.False(t, b.inBackoff(somePeer, now.Add(600*time.Second)))
	require.Equal(t, 384*time.Second, b.strike(somePeer, now.Add(4*strikeDecay)), "nine strikes, four forgiven, one new")
	require.Equal(t, 12*time.Second, b.strike(somePeer, now.Add(100*strikeDecay)))
}

func TestStatusRequestsAreLimited(t *testing.T) {
	t.Parallel()
	b := newPeerBook(4 * time.Second)
	now := dawn
	for range statusBurst {
		require.True(t, b.allowStatus(somePeer, now))
	}
	require.False(t, b.allowStatus(somePeer, now))
	for range 100 { // ream's rhythm is twice as slow
		now = now.Add(statusPeriod)
		require.True(t, b.allowStatus(somePeer, now))
	}
	require.False(t, b.allowStatus(somePeer, now))
	now = now.Add(time.Hour)
	for range statusBurst {
		require.True(t, b.allowStatus(somePeer, now))
	}
	require.False(t, b.allowStatus(somePeer, now), "no more is saved up than a burst")
}

func TestPeerBookIsBounded(t *testing.T) {
	t.Parallel()
	b := newPeerBook(4 * time.Second)
	b.connect("connected", dawn)
	b.strike("worst", dawn)
	for i := range 3 * maxRecords {
		b.strike(peer.ID(fmt.Sprint(i)), dawn.Add(time.Duration(i+1)))
		require.LessOrEqual(t, len(b.records), maxRecords)
	}
	require.Contains(t, b.records, peer.ID("connected"), "who is connected is never forgotten")
	require.NotContains(t, b.records, peer.ID("worst"), "the record used longest ago goes first")
	b.connect("late", dawn.Add(time.Hour))
	require.Len(t, b.records, 2, "what means nothing any more goes at once")
	b.disconnect("late", dawn.Add(time.Hour))
	b.disconnect("connected", dawn.Add(time.Hour))
	require.Empty(t, b.records)
}

func TestRedialRhythm(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{0, 0.5, 0.999} {
		r := redialWait{jitter: func() float64 { return jitter }}
		for range 50 {
			w := r.afterFailure()
			require.GreaterOrEqual(t, w, redialMin)
			require.LessOrEqual(t, w, redialMax)
		}
		require.Equal(t, redialMax, r.next)
		w := r.afterLoss()
		require.GreaterOrEqual(t, w, redialSoon/2)
		require.LessOrEqual(t, w, 2*redialSoon)
		require.Less(t, r.afterFailure(), redialMax*3/4)
	}
}

func TestLogLimiterIsBounded(t *testing.T) {
	t.Parallel()
	l := newLogLimiter()
	require.True(t, l.allow("a", dawn, time.Minute))
	require.False(t, l.allow("a", dawn.Add(time.Minute-1), time.Minute))
	require.True(t, l.allow("a", dawn.Add(time.Minute), time.Minute))
	for i := range 2 * maxLogKeys {
		l.allow(fmt.Sprint(i), dawn, time.Hour)
		require.LessOrEqual(t, len(l.until), maxLogKeys)
	}
	require.False(t, l.allow("full", dawn, time.Hour))
	require.True(t, l.allow("later", dawn.Add(2*time.Hour), time.Hour))
}
