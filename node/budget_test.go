package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/api"
	"aggnode/wire"
)

// A running aggregator is asked over HTTP, as an operator does.
func TestTheBudgetOfARunningNodeChangesOverTheAPI(t *testing.T) {
	net := newTestNetwork(t, 1, 2, wire.SchemeBlake2s)
	cfg := net.config(t, 0)
	cfg.Backend, cfg.ProverCommand = BackendCommand, []string{"/bin/false"}
	n := start(t, cfg)
	token, err := os.ReadFile(filepath.Join(cfg.DataDir, api.TokenFile))
	require.NoError(t, err)
	change := func(body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, fmt.Sprintf("http://%s/aggnode/v1/budget", n.servers.APIAddr()), strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, b.String()
	}
	code, body := change(`{"cores_max":0.5,"cores_min":0.25,"target_ms":12.5,"calendar":true,"tier":"T0"}`)
	require.Equal(t, http.StatusOK, code, body)
	var view api.BudgetView
	require.NoError(t, json.Unmarshal([]byte(body), &view))
	require.Equal(t, "T0", view.Tier)
	require.Equal(t, "T0", view.TierAsked)
	require.NotEmpty(t, view.Moved)
	require.InDelta(t, 1, view.Cores, 0, "below T2 half a core is a whole one")
	require.InDelta(t, 12.5, *view.TargetMS, 0)

	code, body = change(`{"target_ms":100}`)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"cores_max":0.5`, "what is not given stays")
	for wrong, want := range map[string]string{
		`{"cores_max":1000000}`: "must be 0 for no limit or 0.1 to",
		`{"cores_min":2}`:       "cores min 2, must be 0 to 0.5",
		`{"target_ms":0.1}`:     "must be 0 for 50ms or 1ms to 10s",
		`{"tier":"T9"}`:         "must be auto, T0, T1 or T2",
	} {
		code, body = change(wrong)
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, want)
	}
}
