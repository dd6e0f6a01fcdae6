package leanmetricstest

import (
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

const header = "name\ttype\tlabels\tbuckets\thelp\tsource\tduty\n"

func TestTheListParses(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../testdata/leanmetrics.tsv")
	require.NoError(t, err)
	rows, err := parse(string(b))
	require.NoError(t, err)
	require.Len(t, rows, 36)
	faults := CheckLeanMetrics(prometheus.NewRegistry(), string(b))
	require.Len(t, faults, 36, "an empty registry lacks every row")
	for _, f := range faults {
		require.Contains(t, f, ": not exported")
	}
}

func TestDeviationsAreNamed(t *testing.T) {
	t.Parallel()
	hist := func(buckets ...float64) prometheus.Collector {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "m", Buckets: buckets})
	}
	vec := func(labels []string, values ...[]string) prometheus.Collector {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "m"}, labels)
		for _, vs := range values {
			v.WithLabelValues(vs...)
		}
		return v
	}
	for name, tc := range map[string]struct {
		row    string
		have   prometheus.Collector
		faults []string
	}{
		"equal histogram":      {"m\thistogram\t\t0.1,1\t", hist(0.1, 1), nil},
		"other buckets":        {"m\thistogram\t\t0.1,1\t", hist(0.1, 2), []string{"m: buckets [0.1 2], want [0.1 1]"}},
		"one bucket more":      {"m\thistogram\t\t0.1,1\t", hist(0.1, 1, 2), []string{"m: buckets [0.1 1 2], want [0.1 1]"}},
		"other type":           {"m\tgauge\t\t\t", hist(), []string{"m: is a histogram, want a gauge"}},
		"all of a closed set":  {"m\tcounter\tr=a|b\t\t", vec([]string{"r"}, []string{"a"}, []string{"b"}), nil},
		"one of a set missing": {"m\tcounter\tr=a|b\t\t", vec([]string{"r"}, []string{"a"}), []string{`m: no series with r="b"`}},
		"one outside of a set": {"m\tcounter\tr=a\t\t", vec([]string{"r"}, []string{"a"}, []string{"x"}), []string{`m: r="x" is not one of [a]`}},
		"open set":             {"m\tcounter\tc=<name>_<N>|unknown\t\t", vec([]string{"c"}, []string{"gean_1"}), nil},
		"other label":          {"m\tcounter\tr=a\t\t", vec([]string{"q"}, []string{"a"}), []string{"m: labels [q], want [r]"}},
		"bare labels":          {"m\tcounter\tname,version\t\t", vec([]string{"version", "name"}, []string{"a", "b"}), nil},
		"a combination missing": {
			"m\tcounter\td=i|o;r=a|b\t\t",
			vec([]string{"d", "r"}, []string{"i", "a"}, []string{"o", "b"}),
			[]string{"m: 2 series, want all 4 combinations of its labels"},
		},
		"unlabelled wanted": {"m\tcounter\t\t\t", vec([]string{"source"}, []string{"gossip"}), []string{"m: labels [source], want []"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			reg.MustRegister(tc.have)
			require.ElementsMatch(t, tc.faults, CheckLeanMetrics(reg, header+tc.row+"\n"))
		})
	}
}

func TestABrokenListIsAFault(t *testing.T) {
	t.Parallel()
	for _, tsv := range []string{"", "name,type", header + "m\tgauge", header + "m\thistogram\t\t1,x\t"} {
		require.Len(t, CheckLeanMetrics(prometheus.NewRegistry(), tsv), 1, tsv)
	}
}
