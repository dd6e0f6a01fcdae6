package scheduler

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/internal/script"
)

var update = flag.Bool("update", false, "rewrite the expected decisions of testdata/*.txt")

// TestControllerScripts runs testdata/*.txt. A script is a list of steps: command lines, a line of four dashes, the
// decisions, an empty line. Time is what the commands say:
//
//	cpus P                       number of CPUs, before the first step
//	budget [min=C] [max=C] [target=D] [calendar]
//	at TIME INPUT…               one step
//	for DURATION INPUT…          steps each 500 ms; of equal decisions the first is printed
//
// INPUT: wait=D check=D slowdown=X delay=X pressure=X interval=N proving waiting throttled unlimited (the tier has no leaf).
func TestControllerScripts(t *testing.T) {
	t.Parallel()
	script.Files(t, *update, func(t *testing.T, text string) string {
		s := &controllerScript{t: t, cpus: 2}
		return script.Steps(text, s.do, s.happened)
	})
}

var scriptStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type controllerScript struct {
	t         *testing.T
	cpus      int
	now       time.Duration
	budget    Budget
	state     State
	last      Decision
	decisions []string
}

func (s *controllerScript) happened() []string {
	decisions := s.decisions
	s.decisions = nil
	return decisions
}

func (s *controllerScript) do(words []string) {
	switch words[0] {
	case "cpus":
		s.cpus = int(s.number(words[1]))
	case "budget":
		s.budget = Budget{}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "min":
				s.budget.CoresMin = s.number(value)
			case "max":
				s.budget.CoresMax = s.number(value)
			case "target":
				s.budget.Target = s.duration(value)
			case "calendar":
				s.budget.Calendar = true
			default:
				s.t.Fatalf("budget %s", w)
			}
		}
		require.NoError(s.t, s.budget.validate(s.cpus))
	case "at":
		s.now = s.duration(words[1])
		s.step(s.inputs(words[2:]), true)
	case "for":
		in := s.inputs(words[2:])
		for end, first := s.now+s.duration(words[1]), true; s.now < end; first = false {
			s.now += 500 * time.Millisecond
			s.step(in, first)
		}
	default:
		s.t.Fatalf("command %s", words[0])
	}
}

func (s *controllerScript) step(in Inputs, print bool) {
	in.Now = scriptStart.Add(s.now)
	before := s.last
	s.state, s.last = s.state.Step(in, s.budget, s.cpus)
	if print || s.last != before {
		s.decisions = append(s.decisions, fmt.Sprintf("%.1fs cores=%.2f weight=%d %s", s.now.Seconds(), s.last.Cores, s.last.Weight, s.last.Reason))
	}
}

func (s *controllerScript) inputs(words []string) Inputs {
	in := Inputs{Slowdown: 1, Interval: 2, CanLimit: true}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "wait":
			in.QueueWaitP99 = s.duration(value)
		case "check":
			in.CheckP99 = s.duration(value)
		case "slowdown":
			in.Slowdown = s.number(value)
		case "delay":
			in.RunDelay = s.number(value)
		case "pressure":
			in.PressureSome = s.number(value)
		case "interval":
			in.Interval = int(s.number(value))
		case "proving":
			in.Proving = true
		case "waiting":
			in.Waiting = true
		case "throttled":
			in.Throttled = true
		case "unlimited":
			in.CanLimit = false
		default:
			s.t.Fatalf("input %s", w)
		}
	}
	return in
}

func (s *controllerScript) number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(s.t, err)
	return v
}

func (s *controllerScript) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

// Whatever the inputs, a decision is within the operator's limits, and moves no faster than the law says.
func TestEveryDecisionKeepsTheLimits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 7))
	for run := range 300 {
		p := 1 + random.IntN(64)
		var b Budget
		var s State
		now, before := scriptStart, float64(p)
		var cuts []time.Time
		for range 200 {
			changed := random.IntN(20) == 0
			if changed {
				b = Budget{Calendar: random.IntN(2) == 0, Target: time.Duration(random.IntN(2)) * 20 * time.Millisecond}
				if random.IntN(2) == 0 {
					b.CoresMax = minCores + random.Float64()*(float64(p)-minCores)
				}
				if random.IntN(2) == 0 {
					b.CoresMin = random.Float64() * b.top(p)
				}
				require.NoError(t, b.validate(p))
			}
			elapsed := time.Duration(random.IntN(3000)-100) * time.Millisecond // clocks that step back too
			now = now.Add(elapsed)
			bit := func() bool { return random.IntN(2) == 0 }
			in := Inputs{
				Now: now, Interval: random.IntN(5), Slowdown: []float64{0, 1, 1.2, 3, math.Inf(1), math.NaN()}[random.IntN(6)],
				QueueWaitP99: time.Duration(random.IntN(100)) * time.Millisecond, CheckP99: time.Duration(random.IntN(100)) * time.Millisecond,
				RunDelay: random.Float64(), PressureSome: random.Float64() * 20,
				Proving: bit(), Waiting: bit(), Throttled: bit(), CanLimit: bit(),
			}
			var d Decision
			s, d = s.Step(in, b, p)
			require.GreaterOrEqual(t, d.Cores, min(b.top(p), max(b.CoresMin, floorShare*float64(p)))-1e-9, "run %d", run)
			require.LessOrEqual(t, d.Cores, b.top(p)+1e-9)
			require.Contains(t, []int{weightNormal, weightCalendar, weightStress}, d.Weight)
			require.NotEqual(t, ReasonUnknown, d.Reason)
			require.Less(t, d.Reason, reasonEnd)
			if !changed {
				require.LessOrEqual(t, d.Cores, before+growPerSecond*float64(p)*maxElapsed.Seconds()+1e-9)
				require.GreaterOrEqual(t, d.Cores, shrinkTo*before-1e-9)
			}
			if d.Reason == ReasonShrinkSlowdown {
				require.Equal(t, weightStress, d.Weight, "cores are never cut before the weight")
				require.True(t, in.CanLimit && in.Proving)
				cuts = append(cuts, now)
			}
			before = d.Cores
		}
		for i := 1; i < len(cuts); i++ {
			require.GreaterOrEqual(t, cuts[i].Sub(cuts[i-1]), shrinkEvery)
		}
	}
}

// A machine on which a prover slows checks down in proportion to its cores, whatever its weight: memory bandwidth, or a
// host that takes its time from both. The controller finds the cores that checks can bear, and does
// not swing between nothing and everything.
func TestTheControllerSettles(t *testing.T) {
	t.Parallel()
	for _, p := range []int{2, 4, 16, 64} {
		for _, harm := range []float64{0.05, 0.2, 0.4, 0.8} { // slowdown by a prover on all cores
			var s State
			cores := float64(p)
			var window []float64 // slowdown of the last 2.5 s
			var late, steps int
			lowest, highest, sum := float64(p), 0.0, 0.0
			for i := range 600 { // five minutes
				window = append(window, 1+harm*cores/float64(p))
				window = window[max(0, len(window)-int(windowSpan/stepEvery)):]
				mean := 0.0
				for _, w := range window {
					mean += w / float64(len(window))
				}
				in := Inputs{Now: scriptStart.Add(time.Duration(i) * stepEvery), Interval: i % 5, Slowdown: mean, Proving: true, Waiting: true, CanLimit: true}
				if mean > slowdownLimit {
					in.CheckP99 = 2 * defaultTarget
				}
				var d Decision
				s, d = s.Step(in, Budget{}, p)
				cores = d.Cores
				if i < 120 {
					continue // a minute to settle
				}
				steps++
				sum += cores
				lowest, highest = min(lowest, cores), max(highest, cores)
				if 1+harm*cores/float64(p) > slowdownLimit {
					late++
				}
			}
			bearable := min(1, (slowdownLimit-1)/harm) * float64(p)
			mean := sum / float64(steps)
			require.Less(t, float64(late)/float64(steps), 0.6, "p %d, harm %g", p, harm)
			require.Greater(t, mean, 0.7*bearable, "p %d, harm %g", p, harm)
			require.Less(t, mean, 1.2*bearable, "p %d, harm %g", p, harm)
			require.Greater(t, lowest, 0.3*bearable, "p %d, harm %g", p, harm)
			require.Less(t, highest, 2*bearable, "p %d, harm %g", p, harm)
			t.Logf("p %2d, harm %.2f: bearable %5.2f, mean %5.2f, %5.2f to %5.2f, above for %2.0f%%", p, harm, bearable, mean, lowest, highest, 100*float64(late)/float64(steps))
		}
	}
}

func TestEveryReasonIsDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Reasons() {
		require.NotEmpty(t, r.String())
		require.NotEmpty(t, r.Short())
		require.True(t, strings.HasSuffix(r.Long(), "."), r.String())
		require.False(t, seen[r.String()], r.String())
		seen[r.String()] = true
	}
	require.Equal(t, "invalid", Reason(200).String())
	require.Equal(t, "unknown", ReasonUnknown.String())
}

func TestBudgetIsRefusedWithTheRange(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Budget{
		"": {CoresMin: 1, CoresMax: 3.5, Target: time.Second, Calendar: true},
		"cores max 4.5, must be 0 for no limit or 0.1 to 4": {CoresMax: 4.5},
		"cores max -1, must be":                             {CoresMax: -1},
		"cores max 0.05, must be":                           {CoresMax: 0.05},
		"cores max NaN, must be":                            {CoresMax: math.NaN()},
		"cores max +Inf, must be":                           {CoresMax: math.Inf(1)},
		"cores min 3, must be 0 to 2":                       {CoresMin: 3, CoresMax: 2},
		"cores min 5, must be 0 to 4":                       {CoresMin: 5},
		"cores min -0.1, must be":                           {CoresMin: -0.1},
		"cores min NaN, must be":                            {CoresMin: math.NaN()},
		"target 1µs, must be 0 for 50ms or 1ms to 10s":      {Target: time.Microsecond},
		"target -1s, must be":                               {Target: -time.Second},
		"target 11s, must be":                               {Target: 11 * time.Second},
	} {
		if err := b.validate(4); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	require.NoError(t, Budget{}.validate(1))
}
