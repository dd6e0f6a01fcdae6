package node

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"aggnode/aggregate"
	"aggnode/chain/proposer"
	"aggnode/pipeline"
	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/signer"
	"aggnode/telemetry"
	"aggnode/telemetry/leanmetricstest"
	"aggnode/wire"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md and docs/reasons.md")

// everyPart is a node in which every package has registered its metrics. It is not run.
func everyPart(t *testing.T) *prometheus.Registry {
	t.Helper()
	net := newTestNetwork(t, 1, 2, wire.SchemeKeccak)
	cfg := net.config(t, 0)
	cfg.Backend, cfg.ProverCommand, cfg.AggregateVerifier = BackendCommand, []string{"/bin/false"}, VerifierBoth
	n, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return cfg.Registry
}

// compare checks a committed file, or rewrites it with -update.
func compare(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join("..", "docs", name)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
		return
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err, "run `make docs`")
	require.Equal(t, string(want), string(have), "docs/%s is not what the code says: run `make docs`", name)
}

func TestDocsOfMetricsAreCurrent(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Metrics\n\nWritten by `make docs` from the registered metrics of a node; a test compares it.\n" +
		"Names `lean_…` are shared with the other clients and have their exact buckets.\n\n")
	require.NoError(t, telemetry.WriteMetricsDoc(&b, everyPart(t)))
	compare(t, "metrics.md", b.Bytes())
}

func TestEverySharedMetricIsThereWithItsBuckets(t *testing.T) {
	table, err := os.ReadFile("../telemetry/testdata/leanmetrics.tsv")
	require.NoError(t, err)
	require.Empty(t, leanmetricstest.CheckLeanMetrics(everyPart(t), string(table)))
}

// reason is what all tables of reason codes have in common.
type reason interface {
	fmt.Stringer
	Short() string
	Long() string
}

func writeReasons[R reason](w io.Writer, title, intro string, rows []R, columns ...func(R) string) {
	fmt.Fprintf(w, "## %s\n\n%s\n\n", title, intro)
	if len(columns) > 0 {
		fmt.Fprint(w, "| code | verdict | short | meaning |\n|---|---|---|---|\n")
	} else {
		fmt.Fprint(w, "| code | short | meaning |\n|---|---|---|\n")
	}
	for _, r := range rows {
		fmt.Fprintf(w, "| `%s` |", r)
		for _, c := range columns {
			fmt.Fprintf(w, " %s |", c(r))
		}
		fmt.Fprintf(w, " %s | %s |\n", r.Short(), r.Long())
	}
	fmt.Fprintln(w)
}

func TestDocsOfReasonsAreCurrent(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Reason codes\n\nWritten by `make docs` from the tables in the code; a test compares it. Every ended item has exactly one code,\n" +
		"which is also its metric label and log field.\n\n")
	writeReasons(&b, "Inbound items", "Label `reason` of `aggnode_pipeline_verdicts_total`.", wire.Reasons(),
		func(r wire.Reason) string { return pipeline.VerdictOf(r).String() })
	writeReasons(&b, "Jobs", "Label `outcome` of `aggnode_jobs_total`: how one proof ended.", aggregate.JobOutcomes())
	writeReasons(&b, "Sessions", "Label `reason` of `aggnode_sessions_total`: what became of a slot.", aggregate.SessionReasons())
	writeReasons(&b, "Refused signatures", "Why a key of ours did not sign.", signer.Refusals())
	writeReasons(&b, "Block duties", "What became of a slot that one of our validators proposes.", proposer.Outcomes())
	writeReasons(&b, "Decisions of the CPU budget", "Label `reason` of `aggnode_budget_decisions_total`.", scheduler.Reasons())
	writeReasons(&b, "Calls to a prover child", "Label `outcome` of `aggnode_prover_calls_total`.", prover.Outcomes())
	compare(t, "reasons.md", b.Bytes())
}
