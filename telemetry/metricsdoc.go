package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metricRow is one line of the metric table.
type metricRow struct {
	name, kind, labels, help string
}

// descPattern takes a descriptor's text apart: the client library shows name, help and labels nowhere else.
var descPattern = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// WriteMetricsDoc writes the table of all metrics of this program in a registry (those named aggnode_… and lean_…) as
// Markdown: name, type, labels with the values seen, help; sorted by name and the same for the same registry. A metric
// with labels of which no series exists yet has the type "-", for the registry does not tell: components create the
// series of a closed label set at start.
func WriteMetricsDoc(w io.Writer, reg *prometheus.Registry) error {
	rows, err := metricRows(reg)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.name, r.kind, r.labels, strings.ReplaceAll(r.help, "|", `\|`))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write metric table: %w", err)
	}
	return nil
}

func metricRows(reg *prometheus.Registry) ([]metricRow, error) {
	rows, err := describedRows(reg)
	if err != nil {
		return nil, err
	}
	families, err := reg.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range families {
		if !ownMetric(f.GetName()) {
			continue
		}
		row := rows[f.GetName()]
		row.name, row.help = f.GetName(), f.GetHelp()
		row.kind = strings.ToLower(f.GetType().String())
		values := make(map[string][]string)
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
		row.labels = labelText(values, row.labels)
		rows[row.name] = row
	}
	out := make([]metricRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b metricRow) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// describedRows lists what is registered, including metrics without a series.
func describedRows(reg *prometheus.Registry) (map[string]metricRow, error) {
	descs := make(chan *prometheus.Desc) // unbuffered: the loop below reads until the describer closes it
	go func() {
		reg.Describe(descs)
		close(descs)
	}()
	rows := make(map[string]metricRow)
	var bad error
	for d := range descs {
		m := descPattern.FindStringSubmatch(d.String())
		if m == nil {
			bad = fmt.Errorf("read metric descriptor %s", d)
			continue
		}
		if !ownMetric(m[1]) {
			continue
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			help = m[2]
		}
		rows[m[1]] = metricRow{name: m[1], kind: "-", labels: strings.ReplaceAll(m[4], ",", ", "), help: help}
	}
	return rows, bad
}

// labelText renders labels with their values, up to a dozen of each; without any series, the names alone.
func labelText(values map[string][]string, described string) string {
	if len(values) == 0 {
		return described
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	const most = 12
	for i, name := range names {
		vs := values[name]
		slices.Sort(vs)
		vs = slices.Compact(vs)
		if len(vs) > most {
			vs = append(vs[:most:most], "…")
		}
		names[i] = name + ": " + strings.Join(vs, ", ")
	}
	return strings.Join(names, "; ")
}

func ownMetric(name string) bool {
	return strings.HasPrefix(name, "aggnode_") || strings.HasPrefix(name, "lean_")
}
