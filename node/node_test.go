package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/store"
	"aggnode/wire"
)

// seen is one aggregate as the API lists it.
type seen struct {
	Slot    uint64  `json:"slot"`
	Source  string  `json:"source"`
	Indices []int   `json:"indices"`
	AtMS    float64 `json:"at_ms"`
	CheckMS float64 `json:"check_ms"`
}

func getJSON(t *testing.T, url string, into any) int {
	t.Helper()
	resp, err := http.Get(url) //nolint:noctx // a test against our own loopback server
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	return resp.StatusCode
}

func aggregatesOf(t *testing.T, n *Node) []seen {
	var body struct {
		Aggregates []seen `json:"aggregates"`
	}
	getJSON(t, fmt.Sprintf("http://%s/aggnode/v1/aggregates?since=0&limit=256", n.servers.APIAddr()), &body)
	return body.Aggregates
}

// Two nodes over real QUIC: votes of both are aggregated by the first and verified by the second, which pools and
// proposes them.
func TestVotesOfTwoNodesAreAggregatedAndVerifiedOverGossip(t *testing.T) {
	net := newTestNetwork(t, 2, 4, wire.SchemeBlake2s)
	aggregator := start(t, net.config(t, 0))
	other := start(t, net.config(t, 1))

	require.Eventually(t, func() bool {
		for _, a := range aggregatesOf(t, other) {
			if a.Slot > 0 && len(a.Indices) == 4 && a.Source == "gossip" {
				return true
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond, "an aggregate of all four votes reaches the second node")

	for _, a := range aggregatesOf(t, aggregator) {
		require.Equal(t, "own", a.Source, "there is no other aggregator")
	}
	require.Eventually(t, func() bool { return other.tree.Head().Slot > 1 }, time.Minute, 100*time.Millisecond, "blocks are followed")

	for _, n := range []*Node{aggregator, other} {
		var ready struct {
			Ready bool `json:"ready"`
		}
		require.Equal(t, http.StatusOK, getJSON(t, fmt.Sprintf("http://%s/readyz", n.servers.MetricsAddr()), &ready))
		require.True(t, ready.Ready)
		var status struct {
			IsAggregator  bool     `json:"is_aggregator"`
			OwnValidators []uint64 `json:"own_validators"`
			Peers         []any    `json:"peers"`
		}
		getJSON(t, fmt.Sprintf("http://%s/aggnode/v1/status", n.servers.APIAddr()), &status)
		require.Equal(t, n == aggregator, status.IsAggregator)
		require.Len(t, status.OwnValidators, 2)
		require.Len(t, status.Peers, 1)
	}
}

func TestTheDataDirectoryHasOneNode(t *testing.T) {
	net := newTestNetwork(t, 1, 2, wire.SchemeBlake2s)
	cfg := net.config(t, 0)
	n, err := New(cfg)
	require.NoError(t, err)
	defer n.Close()

	second := net.config(t, 0)
	second.DataDir = cfg.DataDir
	_, err = New(second)
	var locked *store.LockedError
	require.ErrorAs(t, err, &locked)
	require.ErrorContains(t, err, "--data-dir")
}

func TestAPortInUseNamesItsFlag(t *testing.T) {
	net := newTestNetwork(t, 1, 2, wire.SchemeBlake2s)
	first := net.config(t, 0)
	n, err := New(first)
	require.NoError(t, err)
	defer n.Close()
	for _, c := range []struct {
		flag string
		set  func(*Config)
	}{
		{"--metrics-port", func(c *Config) { c.MetricsPort = portOf(t, n.servers.MetricsAddr().String()) }},
		{"--api-port", func(c *Config) { c.APIPort = portOf(t, n.servers.APIAddr().String()) }},
	} {
		cfg := net.config(t, 0)
		c.set(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, c.flag)
	}
}
