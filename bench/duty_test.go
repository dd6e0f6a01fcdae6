package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/scheduler"
	"aggnode/wire"
)

// In a bubble work takes no time, so every slot is complete and every latency is zero, whatever the machine does.
func TestDutyLivesThroughEverySlot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var progress bytes.Buffer
		r, err := Duty(t.Context(), DutyConfig{Validators: 5, Slots: 12, DataDir: dir, Progress: &progress})
		require.NoError(t, err)
		require.Equal(t, 5, r.Votes)
		require.Equal(t, 12, r.Slots)
		require.EqualValues(t, minDutySlot.Milliseconds(), r.SlotMS)
		require.Zero(t, r.Incomplete)
		require.Zero(t, r.PublishedMSMax)
		require.Zero(t, r.Proofs)
		require.Positive(t, r.CPUMS)
		require.Contains(t, progress.String(), "12 of 12 slots")
	})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDutyStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Duty(ctx, DutyConfig{Validators: 1, Slots: 100})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestDutyReportCountsWhatItSaw(t *testing.T) {
	t.Parallel()
	cfg := DutyConfig{Validators: 2, Slots: 200}.withDefaults()
	require.EqualValues(t, 412, cfg.firstSlot())
	slots := make([]dutySlot, cfg.Slots)
	ms := time.Millisecond
	for i := range slots {
		slots[i] = dutySlot{votes: 2, verified: 2, begun: ms, reserved: 3 * ms, signed: 20 * ms, published: 21 * ms}
	}
	slots[3].votes = 1
	slots[4].verified = 1
	slots[5].published = 40 * ms
	slots[101].published = 30 * ms // slot 513
	r := newDutyReport(&cfg, slots)
	require.Equal(t, 2, r.Incomplete)
	require.InDelta(t, 21, r.PublishedMSP50, 0)
	require.InDelta(t, 40, r.PublishedMSMax, 0)
	require.InDelta(t, 30, r.BoundaryMSMax, 0)
	require.InDelta(t, 1, r.TimerMSP99, 0)
	require.InDelta(t, 2, r.FsyncMSP50, 0)
	require.InDelta(t, 19, r.SignMSP99, 0)

	var out strings.Builder
	require.NoError(t, r.Print(&out))
	require.Contains(t, out.String(), "2 incomplete")
	b, err := json.Marshal(r)
	require.NoError(t, err)
	for _, field := range []string{
		"votes", "slots", "published_ms_p50", "published_ms_p99", "fsync_ms_p50", "fsync_ms_p99", "sign_ms_p50", "sign_ms_p99",
		"boundary_ms_max", "load",
	} {
		require.Contains(t, string(b), `"`+field+`":`)
	}
}

func TestDutyMeasuresAChangeOfSubtrees(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{2, 3, 200, 511, 1023, 1024, 1025, 5000, maxDutySlots} {
		cfg := DutyConfig{Slots: slots}
		first := cfg.firstSlot()
		last := first + wire.Slot(slots) - 1
		require.Greater(t, first, wire.Slot(leadSlots), "%d slots", slots)
		require.Less(t, first/subtreeSlots, last/subtreeSlots, "%d slots", slots)
		require.Less(t, last+subtreeSlots, wire.Slot(1<<16), "the range of the keys")
	}
}

func TestDutyRefusesWhatItCanNotMeasure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  DutyConfig
		want string
	}{
		"too many validators": {DutyConfig{Validators: 65}, "65 validators"},
		"negative validators": {DutyConfig{Validators: -1}, "-1 validators"},
		"too many slots":      {DutyConfig{Slots: maxDutySlots + 1}, "32769 slots"},
		"a crooked slot":      {DutyConfig{SlotDuration: 251 * time.Millisecond}, "251ms"},
		"no prover":           {DutyConfig{Load: DutyLoadProver}, "no prover command"},
		"no such load":        {DutyConfig{Load: "bricks"}, `"bricks"`},
		"no such scheme":      {DutyConfig{Scheme: "rot13"}, "rot13"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := Duty(t.Context(), c.cfg)
				require.ErrorContains(t, err, c.want)
			})
		})
	}
}

func TestDutyLoadSpinsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	sched, err := scheduler.New(scheduler.Config{})
	require.NoError(t, err)
	defer sched.Close() //nolint:errcheck // of no interest here
	load, err := startDutyLoad(t.Context(), &DutyConfig{Load: DutyLoadSpin}, sched)
	require.NoError(t, err)
	pids := load.pids()
	require.NotEmpty(t, pids)
	load.mark()
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, 0))
	}
	_, proofs := load.used()
	require.Zero(t, proofs)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "it is gone and reaped")
	}
	require.NoError(t, load.stop())
}
