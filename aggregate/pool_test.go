package aggregate

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func newTestPool(t testing.TB, validators int, cfg PoolConfig) *Pool {
	t.Helper()
	clock := &testClock{genesis: time.Now(), slot: 4 * time.Second}
	p, err := NewPool(cfg, testRegistry(t, validators), clock)
	require.NoError(t, err)
	return p
}

func TestFullInboxIsSaidAfterFiveMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 8, PoolConfig{})
		d := dataOf(0, "a")
		for range inboxSize { // nobody files them: Run is not called
			require.True(t, p.AddAttestation(t.Context(), vote(1, d), rootOf(d)))
		}
		began := time.Now()
		require.False(t, p.AddAttestation(t.Context(), vote(1, d), rootOf(d)))
		require.Equal(t, inboxWait, time.Since(began))
		require.InDelta(t, 1, testutil.ToFloat64(p.metrics.full), 0)
		require.EqualValues(t, 1, p.lost.Load())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, p.AddAggregate(ctx, aggregateOf(t, p.registry, d, 1, 2), rootOf(d)))
		require.InDelta(t, 1, testutil.ToFloat64(p.metrics.full), 0, "a caller that left is not a full inbox")
		_, err := p.Snapshot(ctx)
		require.ErrorIs(t, err, context.Canceled)

		runCtx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = p.Run(runCtx) })
		s, err := p.Snapshot(t.Context())
		require.NoError(t, err)
		require.Len(t, s.Groups[0].Raw, 1, "what was added before the call is in the snapshot")
		require.Error(t, p.Run(runCtx), "one owner")
		stop()
		done.Wait()
		require.False(t, p.AddAttestation(t.Context(), vote(2, d), rootOf(d)))
		_, err = p.Snapshot(t.Context())
		require.ErrorIs(t, err, errStopped)
	})
}

func TestManyWritersLoseNothing(t *testing.T) {
	t.Parallel()
	const validators, writers = 512, 8
	p := newTestPool(t, validators, PoolConfig{Subnets: []wire.SubnetID{0}})
	ctx, stop := context.WithCancel(t.Context())
	var run, add sync.WaitGroup
	run.Go(func() { _ = p.Run(ctx) })
	d := dataOf(0, "a")
	for w := range writers {
		add.Go(func() {
			for v := range wire.ValidatorIndex(validators) { // each vote comes from each writer
				for !p.AddAttestation(ctx, vote((v+wire.ValidatorIndex(61*w))%validators, d), rootOf(d)) {
				}
				if v%64 == 0 {
					_, err := p.Snapshot(ctx)
					require.NoError(t, err)
					p.Progress(0)
				}
			}
		})
	}
	add.Wait()
	s, err := p.Snapshot(ctx)
	require.NoError(t, err)
	require.Len(t, s.Groups, 1)
	require.Len(t, s.Groups[0].Raw, validators)
	progress, _ := p.Progress(0)
	require.Equal(t, validators, progress.Votes)
	stop()
	run.Wait()
}

func TestExpectedVotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		validators int
		committees uint64
		subnets    []wire.SubnetID
		want       int
	}{
		{8, 4, []wire.SubnetID{1, 3}, 4},
		{10, 4, []wire.SubnetID{0}, 3},
		{10, 4, []wire.SubnetID{1}, 3},
		{10, 4, []wire.SubnetID{2}, 2},
		{10, 3, []wire.SubnetID{0, 1, 2}, 10},
		{10, 0, []wire.SubnetID{0}, 10},
		{10, 4, nil, 0},
		{2, 4, []wire.SubnetID{3}, 0},
	} {
		p := newTestPool(t, c.validators, PoolConfig{Committees: c.committees, Subnets: c.subnets})
		require.Equal(t, c.want, p.Expected(), "%+v", c)
	}
}

func TestPoolConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]PoolConfig{
		"pool config: negative bound":                            {MaxRaw: -1},
		"pool config: subnet 2, but there are only 2 committees": {Committees: 2, Subnets: []wire.SubnetID{0, 2}},
		"pool config: subnet 1 twice":                            {Committees: 2, Subnets: []wire.SubnetID{1, 1}},
	} {
		_, err := NewPool(cfg, testRegistry(t, 4), &testClock{slot: time.Second})
		require.EqualError(t, err, name)
	}
}

func TestBestForBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 16, PoolConfig{})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = p.Run(ctx) })
		timer := time.NewTimer(9 * time.Second) // slot 2
		<-timer.C
		_, ok := p.BestForBlock(3)
		require.False(t, ok)
		add := func(slot wire.Slot, name string, target wire.Slot, members ...wire.ValidatorIndex) wire.AttestationData {
			d := dataOf(slot, name)
			d.Target.Slot = target
			require.True(t, p.AddAggregate(ctx, aggregateOf(t, p.registry, d, members...), rootOf(d)))
			synctest.Wait()
			return d
		}
		best := func(slot wire.Slot) wire.AttestationData {
			a, ok := p.BestForBlock(slot)
			require.True(t, ok)
			return a.Data
		}
		narrow := add(1, "a", 1, 1, 2)
		require.Equal(t, narrow, best(2))
		wide := add(1, "b", 1, 1, 2, 3)
		require.Equal(t, wide, best(2), "the wider of one target")
		newer := add(2, "c", 2, 1, 2)
		require.Equal(t, newer, best(3), "a newer target before width")
		require.Equal(t, wide, best(2), "only votes of earlier slots")
		_, ok = p.BestForBlock(1)
		require.False(t, ok)
		old := add(2, "d", 1, 4, 5, 6)
		require.Equal(t, newer, best(3))
		require.NotEqual(t, old, best(3))
		stop()
		run.Wait()
	})
}

func TestPoolGauges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		p := newTestPool(t, 8, PoolConfig{Registerer: reg, Subnets: []wire.SubnetID{0}})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = p.Run(ctx) })
		wait := func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
			synctest.Wait()
		}
		d := dataOf(0, "a")
		for v := range wire.ValidatorIndex(4) {
			p.AddAttestation(ctx, vote(v, d), rootOf(d))
		}
		p.AddAggregate(ctx, aggregateOf(t, p.registry, d, 1, 2), rootOf(d))
		synctest.Wait()
		require.InDelta(t, 2, testutil.ToFloat64(p.metrics.loose), 0)
		require.InDelta(t, 1, testutil.ToFloat64(p.metrics.pending), 0)
		require.InDelta(t, 0, testutil.ToFloat64(p.metrics.known), 0)
		wait(3200 * time.Millisecond) // interval 4
		require.InDelta(t, 0, testutil.ToFloat64(p.metrics.pending), 0)
		require.InDelta(t, 1, testutil.ToFloat64(p.metrics.known), 0)
		wait(4800 * time.Millisecond) // slot 2
		require.InDelta(t, 0, testutil.ToFloat64(p.metrics.loose), 0)
		require.InDelta(t, 0, testutil.ToFloat64(p.metrics.rawVotes), 0)
		require.InDelta(t, 1, testutil.ToFloat64(p.metrics.aggregates), 0)
		wait(4 * time.Second) // slot 3
		require.InDelta(t, 0, testutil.ToFloat64(p.metrics.aggregates), 0)
		_, version := p.Progress(0)
		require.EqualValues(t, 5, version)
		stop()
		run.Wait()
		problems, err := testutil.GatherAndLint(reg)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}
