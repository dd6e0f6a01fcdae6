package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func TestWorkIsMeasuredForWhoBudgetsTheProcessor(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var works []Work
	var cpu time.Duration
	inBubble(t, func(c *Config) {
		c.OnWork = func(w Work) {
			mu.Lock()
			defer mu.Unlock()
			works = append(works, w)
		}
		c.ThreadCPU = func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			cpu += 3 * time.Millisecond

			return cpu
		}
	}, func(r *rig) {
		data := dataFor(10, 1, 0)
		require.Equal(t, wire.ReasonNone, r.SubmitLocal(context.Background(), &Item{Attestation: r.attestation(5, data, good)}).Reason)
		synctest.Wait()
		require.Equal(t, wire.ReasonNone, r.SubmitLocal(context.Background(), &Item{Block: r.block(10, good)}).Reason)
		synctest.Wait()
	})
	require.Equal(t, []Work{{Class: ClassLocal, CPU: 3 * time.Millisecond}, {Class: ClassLocal, CPU: 3 * time.Millisecond}}, works)

	_, err := New(Config{Profile: newRig(t, clockAt(10, testSlot), nil).cfg.Profile, Validators: 1, SlotDuration: time.Second, OnWork: func(Work) {}},
		clockAt(10, testSlot), &fakeVerifier{}, newFakeHead(), &fakeSink{})
	require.ErrorContains(t, err, "ThreadCPU")
}

// meterLog writes down what it is told.
type meterLog struct{ told []string }

func (m *meterLog) Votes(wait, wall, cpu time.Duration) {
	m.told = append(m.told, fmt.Sprint("votes ", wait, wall, cpu))
}

func (m *meterLog) Aggregate(wall time.Duration) {
	m.told = append(m.told, fmt.Sprint("aggregate ", wall))
}

func TestOnlyWorkForTheNetworkIsReported(t *testing.T) {
	t.Parallel()
	var m meterLog
	for _, c := range Classes() {
		Work{Class: c, Wait: 1, Wall: 2, CPU: 3}.Report(&m)
	}
	require.ElementsMatch(t, []string{"votes 1ns 2ns 3ns", "aggregate 2ns"}, m.told)
}
