package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof"
	"aggnode/prover"
	"aggnode/verify"
	"aggnode/wire"
)

// leanPQ is the configuration of a node that checks proofs of lean-pq and makes none. No prover is installed.
func leanPQ(t *testing.T) Config {
	t.Helper()
	cfg := newTestNetwork(t, 2, 2, wire.SchemeKeccak).config(t, 1)
	cfg.Backend, cfg.ProverDir = BackendLeanPQ, t.TempDir()
	return cfg
}

func brokenNative(context.Context, func(context.Context, func()) error, func() time.Duration) (*verify.Native, error) {
	return nil, fmt.Errorf("%w: embedded proof", leanproof.ErrSelfTest)
}

func TestANodeThatOnlyVerifiesNeedsNoPython(t *testing.T) {
	t.Setenv("PATH", "")
	n := start(t, leanPQ(t))
	require.Nil(t, n.backend.verifierChild)
	for _, s := range n.stages() {
		require.NotContains(t, []string{"verifier", "arbiter", "prover"}, s.name)
	}
	var ready struct {
		Checks []struct {
			Name   string `json:"name"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	<-n.host.Started()
	getJSON(t, fmt.Sprintf("http://%s/readyz?verbose", n.servers.MetricsAddr()), &ready)
	found := false
	for _, c := range ready.Checks {
		if c.Name == "verifier" {
			found = true
			require.True(t, c.OK)
			require.Equal(t, "native", c.Detail)
		}
	}
	require.True(t, found, ready)
	var status struct {
		Verifier json.RawMessage `json:"verifier"`
	}
	require.Equal(t, http.StatusOK, getJSON(t, fmt.Sprintf("http://%s/aggnode/v1/status", n.servers.APIAddr()), &status))
	require.Contains(t, string(status.Verifier), "py-lean-pq "+prover.LeanPQVersion)
}

func TestWhoChecksFollowsSettingAndBackend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		backend         Backend
		setting         AggregateVerifier
		aggregator      bool
		native, compare bool
		child           bool
		wrong           string
	}{
		{name: "lean-pq", backend: BackendLeanPQ, native: true},
		{name: "lean-pq in a child that is not installed", backend: BackendLeanPQ, setting: VerifierChild, wrong: "aggnode prover install"},
		{name: "lean-pq with a second opinion that is not installed", backend: BackendLeanPQ, setting: VerifierBoth, wrong: "aggnode prover install"},
		{name: "lean-pq aggregator without a prover", backend: BackendLeanPQ, aggregator: true, wrong: "aggnode prover install"},
		{name: "another program", backend: BackendCommand, child: true},
		{name: "another program whose proofs are lean-pq's", backend: BackendCommand, setting: VerifierNative, native: true, child: true},
		{name: "another program and both", backend: BackendCommand, setting: VerifierBoth, native: true, compare: true, child: true},
		{name: "bundle has no choice", backend: BackendBundle, setting: VerifierNative, wrong: "--aggregate-verifier native"},
		{name: "unknown", backend: BackendLeanPQ, setting: "python", wrong: "--aggregate-verifier python"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := leanPQ(t)
			cfg.Backend, cfg.AggregateVerifier, cfg.IsAggregator = c.backend, c.setting, c.aggregator
			if c.backend == BackendCommand {
				cfg.ProverCommand = []string{"/bin/false"}
			}
			n, err := New(cfg)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			defer n.Close()
			require.Equal(t, c.native, n.backend.arbiter.IsNative())
			require.Equal(t, c.compare, n.backend.compare)
			require.Equal(t, c.child, n.backend.verifierChild != nil)
			var names []string
			for _, s := range n.stages() {
				names = append(names, s.name)
			}
			require.Equal(t, c.child, slices.Contains(names, "verifier"))
			require.Equal(t, c.compare, slices.Contains(names, "arbiter"))
		})
	}
	cfg := newTestNetwork(t, 1, 2, wire.SchemeBlake2s).config(t, 0)
	cfg.Backend, cfg.ProverCommand, cfg.AggregateVerifier = BackendCommand, []string{"/bin/false"}, VerifierBoth
	require.ErrorContains(t, cfg.Check(), "blake2s")
}

func TestANativeCheckThatFailsItsSelfTestIsNotUsed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := leanPQ(t)
	cfg.newNative, cfg.Logger = brokenNative, slog.New(slog.NewTextHandler(&log, nil))
	_, err := New(cfg)
	require.ErrorIs(t, err, leanproof.ErrSelfTest)
	require.ErrorIs(t, err, prover.ErrNotInstalled, "there is no child to do it")

	cfg = leanPQ(t)
	cfg.newNative, cfg.Logger = brokenNative, slog.New(slog.NewTextHandler(&log, nil))
	cfg.Backend, cfg.ProverCommand, cfg.AggregateVerifier = BackendCommand, []string{"/bin/false"}, VerifierNative
	n, err := New(cfg)
	require.NoError(t, err)
	defer n.Close()
	require.False(t, n.backend.arbiter.IsNative())
	require.Equal(t, n.backend.verifierChild, n.backend.verifierInUse())
	require.Contains(t, log.String(), leanproof.ErrSelfTest.Error())
	require.False(t, n.checkVerifier().OK, "the child is not up")
}

func TestAProverOfAnUnknownVersionBringsTheChildIn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := leanPQ(t)
	cfg.Backend, cfg.ProverCommand, cfg.AggregateVerifier = BackendCommand, []string{"/bin/false"}, VerifierNative
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	n, err := New(cfg)
	require.NoError(t, err)
	defer n.Close()
	require.Nil(t, n.backend.verifierInUse())
	n.backend.fitVerifier("py_lean_pq " + prover.LeanPQVersion)
	require.True(t, n.backend.arbiter.IsNative())
	require.Equal(t, "native", n.checkVerifier().Detail)
	require.Equal(t, nativeBatch, n.backend.batch())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, n.backend.runVerifierChild(ctx), "nobody needs it")

	n.backend.fitVerifier("py_lean_pq 0.9.9")
	<-n.backend.arbiter.ChildOnly()
	require.Contains(t, log.String(), "0.9.9")
	require.NotNil(t, n.backend.verifierInUse())
	require.Equal(t, 1, n.backend.batch(), "a child would keep the first of a batch waiting")
}

// leanPQPython names a Python that has py-lean-pq; `make interop` sets it.
const leanPQPython = "AGGNODE_TEST_LEANPQ_PYTHON"

func TestNativeCheckAndChildAgreeAboutRealProofs(t *testing.T) {
	python := os.Getenv(leanPQPython)
	if python == "" {
		t.Skip("not run: " + leanPQPython + " names no Python with py-lean-pq")
	}
	cfg := leanPQ(t)
	cfg.AggregateVerifier = VerifierBoth
	installed, err := json.Marshal(prover.Environment{Python: python, Package: prover.LeanPQVersion})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.ProverDir, "aggnode-prover.json"), installed, 0o600))
	n := start(t, cfg)
	require.NoError(t, n.backend.verifierChild.WaitReady(t.Context()))
	comparisons := func() (made, disagreed float64) {
		families, err := cfg.Registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			switch f.GetName() {
			case "aggnode_verifier_comparisons_total":
				made = f.GetMetric()[0].GetCounter().GetValue()
			case "aggnode_verifier_disagreements_total":
				disagreed = f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return made, disagreed
	}
	for round, name := range []string{"two", "eight", "kids2"} {
		proof, err := os.ReadFile(filepath.Join("..", "leanproof", "testdata", "proofs", name+".bin"))
		require.NoError(t, err)
		listed, err := leanproof.ParseClaims(proof)
		require.NoError(t, err)
		claim := prover.Claim{Message: listed.XMSS[0].Message}
		for _, c := range listed.XMSS {
			claim.SignerSet = append(claim.SignerSet, c.PublicKey[:]...)
		}
		for range 64 {
			require.NoError(t, n.checker().Verify(t.Context(), claim, proof))
		}
		require.Eventually(t, func() bool { made, _ := comparisons(); return int(made) >= 1+round }, 20*time.Second, time.Millisecond)
	}
	_, disagreed := comparisons()
	require.Zero(t, disagreed)
	require.True(t, n.backend.arbiter.IsNative())
	require.Equal(t, "native, compared with a child", n.checkVerifier().Detail)
}
