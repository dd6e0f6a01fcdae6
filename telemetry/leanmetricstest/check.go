package leanmetricstest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// row is one metric of the list.
type row struct {
	name, kind string
	labels     []label
	buckets    []float64
}

// label is one label with its values; values is nil when the set is open (a pattern such as <name>_<N>).
type label struct {
	name   string
	values []string
}

// series is one exported time series of a family.
type series struct {
	labels  map[string]string
	buckets []float64 // upper bounds without +Inf
}

// CheckLeanMetrics compares a registry with a list in the format of telemetry/testdata/leanmetrics.tsv and returns one
// sentence for each deviation, in the order of the list: a metric that is missing, has another type, other label names,
// lacks a series of a closed label set or has other bucket edges. No deviation: an empty slice.
func CheckLeanMetrics(g prometheus.Gatherer, tsv string) []string {
	rows, err := parse(tsv)
	if err != nil {
		return []string{err.Error()}
	}
	families, err := g.Gather()
	if err != nil {
		return []string{fmt.Sprintf("gather metrics: %v", err)}
	}
	kinds := make(map[string]string, len(families))
	all := make(map[string][]series, len(families))
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		for _, m := range f.GetMetric() {
			s := series{labels: make(map[string]string)}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			for _, b := range m.GetHistogram().GetBucket() {
				if !math.IsInf(b.GetUpperBound(), 1) {
					s.buckets = append(s.buckets, b.GetUpperBound())
				}
			}
			all[f.GetName()] = append(all[f.GetName()], s)
		}
	}
	faults := []string{}
	for _, r := range rows {
		faults = append(faults, r.check(kinds[r.name], all[r.name])...)
	}
	return faults
}

func (r row) check(kind string, all []series) []string {
	if len(all) == 0 {
		return []string{r.name + ": not exported"}
	}
	var faults []string
	if kind != r.kind {
		faults = append(faults, fmt.Sprintf("%s: is a %s, want a %s", r.name, kind, r.kind))
	}
	for _, s := range all {
		if got, want := s.names(), r.names(); !slices.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("%s: labels %v, want %v", r.name, got, want))
			return faults
		}
		if r.kind == "histogram" && !slices.Equal(s.buckets, r.buckets) {
			faults = append(faults, fmt.Sprintf("%s: buckets %v, want %v", r.name, s.buckets, r.buckets))
			return faults
		}
	}
	combinations := 1
	for _, l := range r.labels {
		faults = append(faults, r.checkValues(l, all)...)
		combinations *= len(l.values)
	}
	if len(faults) == 0 && combinations > len(all) {
		faults = append(faults, fmt.Sprintf("%s: %d series, want all %d combinations of its labels", r.name, len(all), combinations))
	}
	return faults
}

// checkValues compares the values of one label, over all series, with its closed set.
func (r row) checkValues(l label, all []series) []string {
	if l.values == nil {
		return nil
	}
	var faults []string
	for _, want := range l.values {
		if !slices.ContainsFunc(all, func(s series) bool { return s.labels[l.name] == want }) {
			faults = append(faults, fmt.Sprintf("%s: no series with %s=%q", r.name, l.name, want))
		}
	}
	for _, s := range all {
		if !slices.Contains(l.values, s.labels[l.name]) {
			faults = append(faults, fmt.Sprintf("%s: %s=%q is not one of %v", r.name, l.name, s.labels[l.name], l.values))
		}
	}
	return faults
}

func (r row) names() []string {
	names := make([]string, 0, len(r.labels))
	for _, l := range r.labels {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return names
}

func (s series) names() []string {
	names := make([]string, 0, len(s.labels))
	for name := range s.labels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// parse reads the list: a header line, then tab-separated name, type, labels, buckets, …
func parse(tsv string) ([]row, error) {
	lines := strings.Split(strings.TrimRight(tsv, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "name\ttype\tlabels\tbuckets\t") {
		return nil, fmt.Errorf("metric list: unknown header %q", lines[0])
	}
	rows := make([]row, 0, len(lines)-1)
	for n, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) < 4 {
			return nil, fmt.Errorf("metric list, line %d: %d fields", n+2, len(f))
		}
		r := row{name: f[0], kind: f[1]}
		for text := range strings.SplitSeq(f[2], ";") {
			if text != "" {
				r.labels = append(r.labels, parseLabels(text)...)
			}
		}
		for text := range strings.SplitSeq(f[3], ",") {
			if text == "" {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("metric list, line %d: bucket %q", n+2, text)
			}
			r.buckets = append(r.buckets, v)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// parseLabels reads "reason=a|b", "client=<name>_<N>|unknown" (an open set) or bare names "name,version".
func parseLabels(text string) []label {
	name, values, closed := strings.Cut(text, "=")
	if !closed {
		var out []label
		for n := range strings.SplitSeq(text, ",") {
			out = append(out, label{name: n})
		}
		return out
	}
	if strings.Contains(values, "<") {
		return []label{{name: name}}
	}
	return []label{{name: name, values: strings.Split(values, "|")}}
}
