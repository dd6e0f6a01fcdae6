package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeBudget is a budget with one refusal.
type fakeBudget struct{ view BudgetView }

func (b *fakeBudget) BudgetView() BudgetView { return b.view }

func (b *fakeBudget) ChangeBudget(c BudgetSettings) error {
	if c.CoresMax != nil && *c.CoresMax > 8 {
		return errors.New("cores_max 9: must be 0 to 8")
	}
	if c.CoresMax != nil {
		b.view.CoresMax = c.CoresMax
	}
	return nil
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
		{"a change", bearer, `{"cores_max":1.5}`, http.StatusOK, `"cores_max":1.5`},
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
