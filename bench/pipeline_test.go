package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/pipeline"
	"aggnode/wire"
)

// sendingTestBinary is this program as the second process.
func sendingTestBinary(t *testing.T) []string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return []string{program, senderCommand}
}

func TestPipelineMeasuresNodeAndBareLibrary(t *testing.T) {
	t.Parallel()
	profiles := filepath.Join(t.TempDir(), "profiles")
	var progress, table bytes.Buffer
	r, err := Pipeline(t.Context(), PipelineConfig{
		Sender: sendingTestBinary(t), Validators: 32, Passes: 3, Rounds: 2, Rate: 1000, CPUProfiles: profiles, Progress: &progress,
	})
	require.NoError(t, err)
	require.Zero(t, r.Dropped, "%v", r.Reasons)
	require.Zero(t, r.BareDropped)
	require.Zero(t, r.Direct.Dropped)
	for name, v := range map[string]float64{
		"bare": r.BareUS, "node": r.NodeUS, "ratio": r.RatioToBare, "votes": r.VotesPerS, "verdict": r.VerdictP50MS,
		"delay": r.DelayP50MS, "allocations": r.Allocs, "bare allocations": r.BareAllocs, "sender": r.SenderUS,
		"direct": r.Direct.US, "direct votes": r.Direct.VotesPerS,
		"direct verdict": r.Direct.VerdictP50MS, "queue": r.QueueUS, "queue allocations": r.QueueAllocs,
	} {
		require.Positive(t, v, name)
	}
	require.LessOrEqual(t, r.VotesPerS, 1100.0, "no faster than they were sent")
	require.LessOrEqual(t, r.VerdictP50MS, r.VerdictP99MS)

	requireKeys(t, r, "bare_us_per_vote", "node_us_per_vote", "ratio_to_bare", "votes_per_s", "verdict_ms_p50", "verdict_ms_p99",
		"dropped", "allocs_per_vote", "in_process", "queue_us_per_vote", "queue_allocs_per_vote")
	require.NoError(t, r.Print(&table))
	require.Contains(t, table.String(), "node over bare gossip")
	require.Contains(t, progress.String(), "round 2 of 2")
	files, err := os.ReadDir(profiles)
	require.NoError(t, err)
	require.Len(t, files, 8, "four measurements in two rounds")
}

func TestPipelineRefusesWhatItCanNotMeasure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  PipelineConfig
		want string
	}{
		"no sender":              {PipelineConfig{}, "sender"},
		"too many validators":    {PipelineConfig{Sender: []string{"x"}, Validators: wire.DefaultRegistryLimit + 1}, "4097 validators"},
		"negative rounds":        {PipelineConfig{Sender: []string{"x"}, Rounds: -1}, "positive"},
		"longer than the window": {PipelineConfig{Sender: []string{"x"}, Rate: 100}, "their slot is over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Pipeline(t.Context(), c.cfg)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestSenderThatEndsEarlyIsAnError(t *testing.T) {
	t.Parallel()
	_, err := startSender(t.Context(), []string{"false"}, SenderConfig{})
	require.ErrorContains(t, err, "the sender ended")
	_, err = startSender(t.Context(), append(sendingTestBinary(t), "--to", "nonsense"), SenderConfig{Capture: "/nonexistent"})
	require.ErrorContains(t, err, "sender: exit status 1")
	_, err = startSender(t.Context(), []string{"/nonexistent"}, SenderConfig{})
	require.ErrorContains(t, err, "start the sender")
}

func TestSenderRefusesWhatIsNoCapture(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "votes")
	require.NoError(t, os.WriteFile(file, []byte("votes"), 0o600))
	err := SendVotes(t.Context(), SenderConfig{Capture: file, Passes: 1, Rate: 1}, &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorIs(t, err, ErrCapture)
}

// TestPassesTellCopiesOfOnePassAndNoOthers: a vote counts once in each pass.
func TestPassesTellCopiesOfOnePassAndNoOthers(t *testing.T) {
	t.Parallel()
	v, err := makeSlotVotes(t.Context(), 3, nil)
	require.NoError(t, err)
	verifier, err := newVoteVerifier(v)
	require.NoError(t, err)
	p, err := startPasses(t.Context(), v, 2, 1, verifier)
	require.NoError(t, err)
	defer p.stop()
	send := func(pass, i int) wire.Reason {
		item := p.screen(pass, v.messages[i])
		if item == nil {
			return wire.ReasonDuplicate
		}
		return p.Submit(t.Context(), item).Reason
	}
	begin := time.Now()
	for pass := range 2 {
		for i := range 3 {
			require.Equal(t, wire.ReasonNone, send(pass, i))
		}
		require.Equal(t, wire.ReasonDuplicate, send(pass, 1))
	}
	<-p.all
	require.Len(t, p.verdicts(), 6)
	require.Len(t, p.delays(begin, 1000), 6)
	require.Equal(t, map[wire.Reason]int{wire.ReasonDuplicate: 2}, p.lost)

	item, out := p.Screen(wire.Topic{Kind: wire.TopicAttestation, Subnet: 2}, "peer", nil)
	require.Nil(t, item)
	require.Equal(t, pipeline.Outcome{Verdict: pipeline.Ignore, Reason: wire.ReasonWrongSubnet}, out, "a topic of no pass")

	forged := bytes.Clone(v.messages[0])
	forged[len(forged)-1] ^= 1
	fresh, err := startPasses(t.Context(), v, 1, 1, verifier)
	require.NoError(t, err)
	defer fresh.stop()
	item = fresh.screen(0, forged)
	require.NotNil(t, item)
	require.Equal(t, wire.ReasonBadSignature, fresh.Submit(t.Context(), item).Reason, "the checks are real")
}

func TestWorkOnAllCoresEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	done := make([]int, 100)
	require.NoError(t, onAllCores(t.Context(), len(done), func(_ context.Context, i int) error { done[i]++; return nil }))
	for _, n := range done {
		require.Equal(t, 1, n)
	}
	require.ErrorIs(t, onAllCores(t.Context(), 100, func(context.Context, int) error { return ErrCapture }), ErrCapture)
	require.NoError(t, onAllCores(t.Context(), 0, nil))
}
