package prover_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
)

func TestSmoke(t *testing.T) {
	py := os.Getenv("AGGNODE_TEST_LEANPQ_PYTHON")
	if py == "" {
		t.Skip("not run")
	}
	cmd, env, err := prover.LeanPQ(prover.FromPython(py))
	require.NoError(t, err)
	for _, role := range []prover.Role{prover.RoleProve, prover.RoleVerify} {
		c, err := prover.New(prover.Config{Command: cmd, Env: env, Role: role, Logger: slog.Default()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		wctx, wc := context.WithTimeout(ctx, 30*time.Second)
		require.NoError(t, c.WaitReady(wctx))
		wc()
		caps, _ := c.Capabilities()
		t.Logf("%+v", caps)
		cancel()
		require.NoError(t, <-done)
	}
}
