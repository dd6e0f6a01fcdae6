package prover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("a right backend passes", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []string{modeGood, modeListsNoClaims, modeSlow} {
			var out safeBuffer
			report, err := Conformance(t.Context(), fakeConfig(RoleUnknown, mode), &out)
			require.NoError(t, err, out.String())
			require.Zero(t, report.Failures())
			require.Equal(t, "fake", report.Capabilities.Backend)
			require.Greater(t, len(report.Checks), 25)
			require.Contains(t, out.String(), "conforms")
		}
	})
	t.Run("a wrong one fails by name", func(t *testing.T) {
		t.Parallel()
		for mode, want := range map[string]error{
			modeYes: ErrSchemeMismatch, modeNo: ErrSchemeMismatch, modeOldVersion: nil, modeExit: ErrCrashed,
			modeHelloBadProof: ErrClaimMismatch, modeGarbage: ErrProtocol, modeUnchecked: ErrSchemeMismatch,
		} {
			report, err := Conformance(t.Context(), fakeConfig(RoleUnknown, mode), nil)
			require.ErrorIs(t, err, errNotConforming, mode)
			require.Positive(t, report.Failures(), mode)
			if want != nil {
				require.ErrorIs(t, err, want, mode)
			}
		}
	})
	t.Run("one that goes on after its end of input fails that check alone", func(t *testing.T) {
		t.Parallel()
		cfg := fakeConfig(RoleUnknown, modeIgnoreEnd)
		cfg.HelloTimeout, cfg.StopGrace = 4*time.Second, 200*time.Millisecond
		report, err := Conformance(t.Context(), cfg, nil)
		require.ErrorIs(t, err, errNotConforming)
		failed := map[string]bool{}
		for _, c := range report.Checks {
			if c.Err != nil {
				failed[c.Name] = true
			}
		}
		require.True(t, failed["the end of its input ends it during set-up"], failed)
	})
	t.Run("a command that is missing", func(t *testing.T) {
		t.Parallel()
		_, err := Conformance(t.Context(), Config{}, nil)
		require.ErrorContains(t, err, "no command")
	})
}
