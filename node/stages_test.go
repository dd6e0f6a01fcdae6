package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestPartsStopInTheWrittenOrder(t *testing.T) {
	net := newTestNetwork(t, 1, 2, wire.SchemeBlake2s)
	cfg := net.config(t, 0)
	cfg.Backend, cfg.ProverCommand = BackendCommand, []string{"/bin/false"}
	n, err := New(cfg)
	require.NoError(t, err)
	defer n.Close()
	var names []string
	for _, s := range n.stages() {
		names = append(names, s.name)
	}
	require.Equal(t, []string{
		"intake", "proposer", "signer", "pipeline", "session", "pool", "prover", "verifier", "budget", "p2p", "clock", "announcer", "api",
	}, names)
}

func TestAPartThatEndsByItselfEndsTheNodeWithItsName(t *testing.T) {
	net := newTestNetwork(t, 1, 2, wire.SchemeBlake2s)
	cfg := net.config(t, 0)
	n, err := New(cfg)
	require.NoError(t, err)
	defer n.Close()
	other, err := New(net.config(t, 0)) // the same gossip port, a data directory of its own
	require.NoError(t, err)
	defer other.Close()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	<-n.host.Started()
	// The same UDP port is taken now: the second node's p2p part fails, and the node says so.
	err = other.Run(t.Context())
	require.ErrorContains(t, err, "p2p")
	require.ErrorContains(t, err, "--gossipsub-port")
	cancel()
	require.NoError(t, <-done)
}

// A part that does not stop is named and does not keep the others from stopping.
func TestAStuckPartIsNamedAndLeftBehind(t *testing.T) {
	n := &Node{log: testLogger(t)}
	ctx, cancel := context.WithCancel(t.Context())
	stuck := &running{stage: stage{name: "stuck"}, cancel: func() {}, done: make(chan struct{})}
	fine := &running{stage: stage{name: "fine"}, cancel: cancel, done: make(chan struct{}), err: context.Canceled}
	go func() {
		<-ctx.Done()
		close(fine.done)
	}()
	err := n.stop([]*running{stuck, fine}, time.Millisecond)
	require.ErrorContains(t, err, "stuck did not stop")
	require.False(t, errors.Is(err, context.Canceled), "an ordered stop is no fault")
	<-fine.done
}
