package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeBudget is a budget with two refusals.
type fakeBudget struct{ view BudgetView }

func (b *fakeBudget) BudgetView() BudgetView { return b.view }

func (b *fakeBudget) ChangeBudget(_ context.Context, c BudgetSettings) (moved string, err error) {
	if c.CoresMax != nil && *c.CoresMax > 8 {
		return "", errors.New("cores_max 9: must be 0 to 8")
	}
	if c.Tier != nil && *c.Tier == "T2" {
		return "", fmt.Errorf("stopping: %w", context.DeadlineExceeded)
	}
	if c.CoresMax != nil {
		b.view.CoresMax = c.CoresMax
	}
	if c.Tier != nil {
		b.view.Tier, b.view.TierAsked, moved = *c.Tier, *c.Tier, "no prover runs"
	}
	return moved, nil
}

func budgetRig(t *testing.T) *running {
	t.Helper()
	two := 2.0
	return serve(t, func(c *Config, s *Sources) {
		c.Token = strings.Repeat("a", 64)
		s.Budget = &fakeBudget{BudgetView{BudgetSettings: BudgetSettings{CoresMax: &two}, Tier: "T0", Cores: 2, Reason: "steady"}}
	})
}

func TestTheBudgetIsReadFromTheSameMachineAndChangedWithTheToken(t *testing.T) {
	t.Parallel()
	r := budgetRig(t)
	url := r.apiURL("/aggnode/v1/budget")
	code, body := do(t, http.MethodGet, url, "")
	require.Equal(t, http.StatusOK, code)
	var view BudgetView
	require.NoError(t, json.Unmarshal([]byte(body), &view))
	require.Equal(t, "T0", view.Tier)
	require.InDelta(t, 2, *view.CoresMax, 0)

	bearer := "Bearer " + strings.Repeat("a", 64)
	for _, c := range []struct {
		name, auth, body string
		code             int
		text             string
	}{
		{"no token", "", `{"cores_max":1}`, http.StatusUnauthorized, TokenFile},
		{"another token", "Bearer " + strings.Repeat("b", 64), `{"cores_max":1}`, http.StatusUnauthorized, TokenFile},
		{"a prefix of the token", "Bearer aaaa", `{"cores_max":1}`, http.StatusUnauthorized, TokenFile},
		{"not a bearer", strings.Repeat("a", 64), `{"cores_max":1}`, http.StatusUnauthorized, TokenFile},
		{"unknown field", bearer, `{"cores":1}`, http.StatusBadRequest, "cores_max"},
		{"not JSON", bearer, `cores_max=1`, http.StatusBadRequest, "cores_max"},
		{"out of range", bearer, `{"cores_max":9}`, http.StatusBadRequest, "must be 0 to 8"},
		{"the controller is gone", bearer, `{"tier":"T2"}`, http.StatusServiceUnavailable, "deadline"},
		{"a change", bearer, `{"cores_max":1.5}`, http.StatusOK, `"cores_max":1.5`},
		{"a change of the tier", bearer, `{"tier":"T1"}`, http.StatusOK, `"tier":"T1","tier_asked":"T1","tier_reason":"","moved":"no prover runs"`},
	} {
		var header []string
		if c.auth != "" {
			header = []string{"Authorization", c.auth}
		}
		code, body := do(t, http.MethodPatch, url, c.body, header...)
		require.Equal(t, c.code, code, c.name)
		require.Contains(t, body, c.text, c.name)
	}
}

func TestFromElsewhereTheBudgetIsReadWithTheToken(t *testing.T) {
	t.Parallel()
	r := budgetRig(t)
	for auth, want := range map[string]int{"": http.StatusForbidden, "Bearer wrong": http.StatusForbidden, "Bearer " + strings.Repeat("a", 64): http.StatusOK} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/aggnode/v1/budget", nil)
		req.RemoteAddr = "192.0.2.7:4000"
		req.Header.Set("Authorization", auth)
		rec := httptest.NewRecorder()
		r.apiHandler().ServeHTTP(rec, req)
		require.Equal(t, want, rec.Code, auth)
	}
}

func TestWithoutATokenNothingIsChanged(t *testing.T) {
	t.Parallel()
	r := serve(t, func(_ *Config, s *Sources) { s.Budget = &fakeBudget{} })
	code, _ := do(t, http.MethodPatch, r.apiURL("/aggnode/v1/budget"), `{}`, "Authorization", "Bearer ")
	require.Equal(t, http.StatusUnauthorized, code)
}

func TestTheTokenIsMadeOnceForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := LoadToken(dir)
	require.NoError(t, err)
	require.Len(t, first, 2*tokenSize)
	again, err := LoadToken(dir)
	require.NoError(t, err)
	require.Equal(t, first, again)
	info, err := os.Stat(filepath.Join(dir, TokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(dir, TokenFile), []byte("short\n"), 0o600))
	_, err = LoadToken(dir)
	require.ErrorContains(t, err, TokenFile)
	_, err = LoadToken(filepath.Join(dir, "missing"))
	require.Error(t, err)
}
