package aggregate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
)

func TestReasonTablesAreComplete(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	check := func(code, short, long string) {
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, code)
		require.False(t, seen[code], code)
		seen[code] = true
		require.NotEmpty(t, short)
		require.Regexp(t, `^[A-Z].*\.$`, long)
	}
	require.Len(t, JobOutcomes(), 9)
	for _, o := range JobOutcomes() {
		check(o.String(), o.Short(), o.Long())
	}
	clear(seen)
	for _, r := range SessionReasons() {
		check(r.String(), r.Short(), r.Long())
	}
	clear(seen)
	for tr := triggerNone; tr < triggerEnd; tr++ {
		check(tr.String(), "-", "T.")
	}
	clear(seen)
	for p := range phaseEnd {
		check(phaseCodes[p], "-", "P.")
	}
	require.Equal(t, "invalid", jobOutcomeEnd.String())
	require.Equal(t, "invalid", sessionReasonEnd.String())
	require.Equal(t, "invalid", triggerEnd.String())
	require.Equal(t, []string{"unknown", "own", "gossip", "unknown"},
		[]string{SourceUnknown.String(), SourceOwn.String(), SourceGossip.String(), Source(9).String()})
}

func TestOutcomeOfProverErrors(t *testing.T) {
	t.Parallel()
	alive := t.Context()
	cancelled, cancel := context.WithCancel(alive)
	cancel()
	expired, cancel := context.WithDeadline(alive, time.Unix(0, 0))
	defer cancel()
	unavailable := func(cause error) error { return fmt.Errorf("%w: %w", prover.ErrUnavailable, cause) }
	for _, c := range []struct {
		err        error
		prove, job context.Context
		want       JobOutcome
		isBound    bool
	}{
		{unavailable(prover.ErrTimeout), expired, alive, JobTimedOut, true},
		{unavailable(prover.ErrTimeout), alive, alive, JobTimedOut, true},
		{unavailable(context.DeadlineExceeded), alive, alive, JobTimedOut, true},
		{&prover.CrashError{Signal: 9}, expired, alive, JobTimedOut, true},
		{unavailable(prover.ErrStuck), alive, alive, JobTimedOut, false},
		{&prover.CrashError{Signal: 9}, alive, alive, JobCrashed, false},
		{prover.ErrUnavailable, alive, alive, JobCrashed, false},
		{unavailable(prover.ErrProtocol), alive, alive, JobCrashed, false},
		{errors.New("anything"), alive, alive, JobCrashed, false},
		{&prover.RefusedError{Code: prover.CodeTooManyRaw, Index: -1}, alive, alive, JobRefused, false},
		{unavailable(context.Canceled), cancelled, cancelled, JobCancelled, false},
	} {
		got, isBound := outcomeOf(c.err, c.prove, c.job)
		require.Equal(t, c.want, got, "%v", c.err)
		require.Equal(t, c.isBound, isBound, "%v", c.err)
	}
}
