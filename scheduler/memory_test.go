package scheduler

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestTheMemoryOfAProverAndItsSpareAddsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(t, "/svc", "cpu")
		s := k.scheduler(Config{CgroupRoot: k.root, ProcRoot: k.proc}, 2)
		holds := func(pid, pages int) {
			dir := filepath.Join(k.proc, strconv.Itoa(pid))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			k.setAt(dir, "statm", "9999 "+strconv.Itoa(pages)+" 1 1 0 1 0\n")
		}
		resident := func() int {
			return int(testutil.ToFloat64(s.metrics.resident.WithLabelValues("prover"))) / os.Getpagesize()
		}
		holds(11, 100)
		holds(12, 30)
		ctx, stop := context.WithCancel(t.Context())
		var both, one sync.WaitGroup
		both.Go(func() { require.NoError(t, s.Watch(ClassProver)(ctx, 11, 1<<40)) })
		one.Go(func() {
			require.ErrorContains(t, s.Watch(ClassProver)(ctx, 12, int64(50*os.Getpagesize())), "of prover 12 holds")
		})
		advance(1)
		require.Equal(t, 130, resident())
		holds(11, 80)
		advance(1)
		require.Equal(t, 110, resident())
		holds(12, 60)
		one.Wait()
		advance(1)
		require.Equal(t, 80, resident(), "one that has ended holds nothing")
		require.Equal(t, 1.0, testutil.ToFloat64(s.metrics.kills.WithLabelValues("prover")))
		stop()
		both.Wait()
		require.Zero(t, resident())
	})
}
