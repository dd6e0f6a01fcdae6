package main

import (
	"bytes"
	"log/slog"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/node"
)

func TestTheMemoryLimitIsTheFlagThenTheEnvironmentThenTheRule(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "") // restored at the end
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	limit := func(s settings) (mib int64, log string, err error) {
		var b bytes.Buffer
		err = limitMemory(&s, &node.Config{}, slog.New(slog.NewTextHandler(&b, nil)))
		return debug.SetMemoryLimit(-1) >> 20, b.String(), err
	}
	mib, log, err := limit(settings{})
	require.NoError(t, err)
	require.Contains(t, log, "after 0 MiB for children")
	require.GreaterOrEqual(t, mib, int64(256))

	mib, log, err = limit(settings{MemoryLimit: 3000})
	require.NoError(t, err)
	require.Contains(t, log, "--memory-limit-mib")
	require.Equal(t, int64(3000), mib)

	t.Setenv("GOMEMLIMIT", "3000MiB") // as the runtime would have read it
	mib, log, err = limit(settings{})
	require.NoError(t, err)
	require.Contains(t, log, "why=GOMEMLIMIT")
	require.Equal(t, int64(3000), mib)

	for _, bad := range []int64{-1, 1, 63, 1<<30 + 1} {
		_, _, err = limit(settings{MemoryLimit: bad})
		require.ErrorContains(t, err, "must be 0 for the default, or 64 to")
	}
}
