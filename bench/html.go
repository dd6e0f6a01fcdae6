package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed isolation.html.tmpl
var isolationPage string

// The drawing area of a curve in SVG units, and its margins for the labels.
const (
	curveWidth, curveHeight = 760, 290
	curveLeft, curveTop     = 78, 12
	curveRight, curveBottom = 24, 46
	plotWidth               = curveWidth - curveLeft - curveRight
	plotHeight              = curveHeight - curveTop - curveBottom
	curvePoints             = 160
	barWidth                = 460 // of the longest bar of stages

	lastQuantile = 0.999                  // of some 1,300 checks, one is beyond
	minCeiling   = 100 * time.Microsecond // of the y axis
	minFloor     = 0.001                  // of the y axis in ms: the clock is not finer
)

type page struct {
	*IsolationReport
	Made   string
	Doubts []string
	Curves []curve
	Stages []stageBar
	Tables []pageTable
	Legend []series
}

// curve is latency over quantile, the latter stretched towards 1 as tails need.
type curve struct {
	Title  string
	Width  int
	Height int
	Series []series
	X, Y   []axisTick
	Left   int
	Right  int
	Top    int
	Bottom int
}

type series struct {
	Name, Class, Points string
}

type axisTick struct {
	At    float64
	Label string
}

type stageBar struct {
	Name  string
	Total string
	Parts []stagePart
}

type stagePart struct {
	Name, Class string
	X, Width    float64
	Label       string
}

type pageTable struct {
	Title string
	Head  []string
	Rows  [][]string
}

// WriteHTML writes a page that needs nothing besides itself.
func (r *IsolationReport) WriteHTML(w io.Writer) error {
	t, err := template.New("isolation").Parse(isolationPage)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	p := page{IsolationReport: r, Made: time.Now().UTC().Format(time.RFC3339), Doubts: r.doubts}
	for _, k := range Kinds() {
		p.Legend = append(p.Legend, series{Name: k.Long(), Class: k.String()})
	}
	p.Curves = []curve{
		r.curve("Aggregate checks, one at a time", func(k *pooled) []time.Duration { return k.single }),
		r.curve(fmt.Sprintf("Aggregate checks, bursts of %d", burstSize), func(k *pooled) []time.Duration { return k.burst }),
		r.curve("Votes, beside single aggregates", func(k *pooled) []time.Duration { return k.votes }),
	}
	p.Stages = r.stageBars()
	p.Tables = r.tables()
	return t.Execute(w, p)
}

// stretch maps a quantile to 0..1 by the number of nines, so that 0.5, 0.9, 0.99 and 0.999 are about equally far apart.
func stretch(q float64) float64 { return math.Log10(1-q) / math.Log10(1-lastQuantile) }

// curve draws one distribution for each kind. Both axes are stretched: what is worth seeing lies within some percent of the
// idle latency and a hundred times above it.
func (r *IsolationReport) curve(title string, of func(*pooled) []time.Duration) curve {
	c := curve{Title: title, Width: curveWidth, Height: curveHeight, Left: curveLeft, Right: curveWidth - curveRight, Top: curveTop, Bottom: curveTop + plotHeight}
	low, high := time.Duration(math.MaxInt64), minCeiling
	for i := range r.pooled {
		if values := of(&r.pooled[i]); len(values) > 0 {
			low, high = min(low, quantile(values, 0)), max(high, quantile(values, lastQuantile))
		}
	}
	ticks := logTicks(max(float64(min(low, high))/float64(time.Millisecond), minFloor), float64(high)/float64(time.Millisecond))
	floor, decades := ticks[0], math.Log10(ticks[len(ticks)-1]/ticks[0])
	y := func(ms float64) float64 {
		return float64(curveTop) + plotHeight*(1-math.Log10(max(ms, floor)/floor)/decades)
	}
	for i := range r.pooled {
		values := of(&r.pooled[i])
		if len(values) == 0 {
			continue
		}
		var points strings.Builder
		for n := range curvePoints + 1 {
			share := float64(n) / curvePoints
			q := 1 - math.Pow(1-lastQuantile, share)
			ms := float64(quantile(values, q)) / float64(time.Millisecond)
			_, _ = fmt.Fprintf(&points, "%.1f,%.1f ", curveLeft+plotWidth*share, y(ms))
		}
		c.Series = append(c.Series, series{Name: r.pooled[i].kind.Long(), Class: r.pooled[i].kind.String(), Points: points.String()})
	}
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999} {
		c.X = append(c.X, axisTick{At: curveLeft + plotWidth*stretch(q), Label: fmt.Sprintf("%g %%", 100*q)})
	}
	for _, ms := range ticks {
		c.Y = append(c.Y, axisTick{At: y(ms), Label: fmt.Sprintf("%.4g ms", ms)})
	}
	return c
}

// logTicks returns 1, 2 and 5 times powers of ten, at least two, from the last at or below low to the first at or above
// high. Both are positive.
func logTicks(low, high float64) []float64 {
	var ticks []float64
	for exponent := math.Floor(math.Log10(low)); ; exponent++ {
		for _, m := range []float64{1, 2, 5} {
			tick := m * math.Pow(10, exponent)
			if tick <= low {
				ticks = ticks[:0] // the one before was not the last
			}
			if ticks = append(ticks, tick); tick >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
}

func (r *IsolationReport) stageBars() []stageBar {
	longest := 0.0
	for i := range r.pooled {
		longest = max(longest, r.pooled[i].singles.StageMS.total())
	}
	if longest == 0 {
		return nil
	}
	bars := make([]stageBar, len(r.pooled))
	for i := range r.pooled {
		s := r.pooled[i].singles.StageMS
		bar := stageBar{Name: r.pooled[i].kind.Long(), Total: fmt.Sprintf("%.2f ms", s.total())}
		x := 0.0
		for _, p := range []struct {
			name, class string
			ms          float64
		}{
			{"decode", "s1", s.Decode}, {"queue", "s2", s.Queue}, {"signer set", "s3", s.SignerSet}, {"check", "s4", s.Check}, {"pipe", "s5", s.Pipe},
		} {
			width := barWidth * p.ms / longest
			bar.Parts = append(bar.Parts, stagePart{Name: p.name, Class: p.class, X: x, Width: width, Label: fmt.Sprintf("%s %.3f ms", p.name, p.ms)})
			x += width
		}
		bars[i] = bar
	}
	return bars
}

func (s StageMS) total() float64 { return s.Queue + s.Decode + s.SignerSet + s.Pipe + s.Check }

func (r *IsolationReport) tables() []pageTable {
	latency := func(title string, of func(*pooled) (Latency, float64)) pageTable {
		t := pageTable{Title: title, Head: []string{"", "p50 ms", "p90 ms", "p99 ms", "max ms", "a second", "drops"}}
		for i := range r.pooled {
			l, rate := of(&r.pooled[i])
			t.Rows = append(t.Rows, append(cells(r.pooled[i].kind.Long(), "%.2f", l.P50MS, l.P90MS, l.P99MS, l.MaxMS, rate), fmt.Sprint(l.Drops)))
		}
		return t
	}
	whole := pageTable{Title: "Whole phases", Head: []string{"", "proofs", "proofs a minute", "node CPU s", "of it GC", "verifier CPU s", "prover CPU s"}}
	for i := range r.pooled {
		p := &r.pooled[i]
		a, b := p.singles.CPUSeconds, p.bursts.CPUSeconds
		whole.Rows = append(whole.Rows, cells(p.kind.Long(), "%.4g", p.proofs, 60*p.rate(), a.Node+b.Node,
			p.singles.CollectorCPU+p.bursts.CollectorCPU, a.Verifier+b.Verifier, a.Prover+b.Prover))
	}
	rounds := pageTable{Title: "Rounds: p50 of single checks, ms", Head: []string{"", "by round"}}
	for _, k := range Kinds() {
		var list []string
		for _, p := range r.Phases {
			if p.Kind == k {
				list = append(list, fmt.Sprintf("%.2f", p.Single.P50MS))
			}
		}
		rounds.Rows = append(rounds.Rows, []string{k.Long(), strings.Join(list, "  ")})
	}
	return []pageTable{
		latency("Aggregate checks, one at a time", func(p *pooled) (Latency, float64) { return p.singles.Latency, p.singles.ChecksPerSecond }),
		latency(fmt.Sprintf("Aggregate checks, bursts of %d", burstSize), func(p *pooled) (Latency, float64) { return p.bursts.Latency, p.bursts.ChecksPerSecond }),
		latency("Votes, beside single aggregates", func(p *pooled) (Latency, float64) {
			return p.singles.Votes, ratio(float64(p.singles.Votes.Checks), p.singles.Seconds)
		}),
		whole, rounds,
	}
}

func cells(name, format string, values ...float64) []string {
	out := []string{name}
	for _, v := range values {
		out = append(out, fmt.Sprintf(format, v))
	}
	return out
}
