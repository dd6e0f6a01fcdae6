package pipeline

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestTimesAreExportedAsAHistogramOfTheLibrary(t *testing.T) {
	t.Parallel()
	for name, buckets := range map[string][]float64{"wait": waitBuckets, "validation": validationBuckets, "arrival": arrivalBuckets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			desc := prometheus.NewDesc("aggnode_x_seconds", "X.", []string{"class"}, nil)
			ours := newTimes(desc, buckets, "block")
			theirs := prometheus.NewHistogramVec(
				prometheus.HistogramOpts{Name: "aggnode_x_seconds", Help: "X.", Buckets: buckets}, []string{"class"})
			observed := []time.Duration{0, -time.Second, time.Nanosecond, time.Hour}
			for _, b := range buckets {
				edge := time.Duration(b * float64(time.Second))
				observed = append(observed, edge-time.Microsecond, edge, edge+time.Microsecond)
			}
			for _, d := range observed {
				ours.observeLocked(d)
				theirs.WithLabelValues("block").Observe(d.Seconds())
			}
			a, b := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
			a.MustRegister(&timesCollector{mu: &mu, all: []*times{ours, newTimes(desc, buckets, "local")}})
			b.MustRegister(theirs)
			theirs.WithLabelValues("local")
			got, err := a.Gather()
			require.NoError(t, err)
			want, err := b.Gather()
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.Equal(t, want[0].GetName(), got[0].GetName())
			require.Equal(t, want[0].GetType(), got[0].GetType())
			for i, m := range want[0].GetMetric() {
				h := got[0].GetMetric()[i]
				require.Equal(t, m.GetLabel()[0].GetValue(), h.GetLabel()[0].GetValue())
				require.Equal(t, m.GetHistogram().GetSampleCount(), h.GetHistogram().GetSampleCount())
				require.InDelta(t, m.GetHistogram().GetSampleSum(), h.GetHistogram().GetSampleSum(), 1e-6)
				require.Len(t, h.GetHistogram().GetBucket(), len(buckets))
				for k, bucket := range m.GetHistogram().GetBucket() {
					require.Equal(t, bucket.GetUpperBound(), h.GetHistogram().GetBucket()[k].GetUpperBound()) //nolint:testifylint // exact
					require.Equal(t, bucket.GetCumulativeCount(), h.GetHistogram().GetBucket()[k].GetCumulativeCount())
				}
			}
		})
	}
}
