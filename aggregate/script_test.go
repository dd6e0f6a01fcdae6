package aggregate

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/internal/script"
	"aggnode/prover"
	"aggnode/wire"
)

var update = flag.Bool("update", false, "rewrite the expected output of testdata/*.txt")

// TestScripts runs testdata/*.txt. A script is commands, one a line; what happened by the end of a command stands below
// it, indented. Times are seconds since genesis, in virtual time.
//
//	network validators=8 committees=2 subnets=0,1 slot=4s children=2 hold    the first command; defaults 8, 1, 0, 4s, 2
//	prover fixed=600ms raw=5ms child=1.2s hello=600ms max_raw=9 overlap next=crashes,lies ready=false
//	budget delay=1s
//	peers 0 | stall 5s | fail 2     the network: peers, slow, failing publications
//	check 500ms | unchecked 3       self-checks: how long each takes, and how many get no answer
//	role on | role off
//	at 0.8                          waits until that time
//	vote 0-5,7 data=a slot=3        verified votes arrive; data and slot default to a and the clock's
//	aggregate 1,3 data=a slot=3     a verified aggregate arrives
//	ready                           prints the answer of Ready
//	supply                          prints for how long there was something to prove, and how much of that was proved
func TestScripts(t *testing.T) {
	t.Parallel()
	script.Files(t, *update, func(t *testing.T, text string) (got string) {
		synctest.Test(t, func(t *testing.T) { got = runScript(t, text) })
		return got
	})
}

func runScript(t *testing.T, text string) string {
	s := &play{t: t}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue // output of an earlier run
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.run(line)
		for _, l := range s.news() {
			fmt.Fprintln(&out, "    "+l)
		}
	}
	s.r.stop()
	for _, l := range s.news() {
		fmt.Fprintln(&out, "    "+l)
	}
	return out.String()
}

type play struct {
	t     *testing.T
	r     *rig
	shown int
}

// args are the words of a command: bare ones, and key=value.
type args map[string]string

func (a args) has(key string) bool { _, ok := a[key]; return ok }

func (a args) or(key, def string) string {
	if v, ok := a[key]; ok {
		return v
	}
	return def
}

func (s *play) run(line string) {
	words := strings.Fields(line)
	a := args{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		a[key] = value
	}
	first := ""
	if len(words) > 1 {
		first = words[1]
	}
	switch words[0] {
	case "network":
		s.network(a)
	case "prover":
		s.r.prover.set(func(f *fakeProver) { s.prover(f, a) })
	case "budget":
		s.r.budget.mu.Lock()
		s.r.budget.delay = s.duration(a["delay"])
		s.r.budget.mu.Unlock()
	case "peers":
		s.r.net.set(func(n *fakeNetwork) { n.peers = s.number(first) })
	case "stall":
		s.r.net.set(func(n *fakeNetwork) { n.stall = s.duration(first) })
	case "check":
		s.r.net.set(func(n *fakeNetwork) { n.checkTime = s.duration(first) })
	case "supply":
		s.note("useful %.3f s, busy %.3f s, ratio %.3f", s.r.value("aggnode_prover_useful_seconds_total"),
			s.r.value("aggnode_prover_busy_seconds_total"), s.r.value("aggnode_prover_busy_ratio"))
	case "fail":
		s.r.net.set(func(n *fakeNetwork) { n.failures = s.number(first) })
	case "unchecked":
		s.r.net.set(func(n *fakeNetwork) { n.noAnswers = s.number(first) })
	case "role":
		s.r.agg.SetEnabled(first == "on")
		synctest.Wait()
	case "at":
		at, err := strconv.ParseFloat(first, 64)
		require.NoError(s.t, err)
		s.r.wait(time.Until(s.r.clock.genesis.Add(time.Duration(at * float64(time.Second)))))
	case "vote":
		s.r.vote(s.data(a), s.indices(first)...)
	case "aggregate":
		s.r.aggregate(s.data(a), s.indices(first)...)
	case "ready":
		ok, why := s.r.agg.Ready()
		s.note("ready=%t %s", ok, why)
	default:
		require.Failf(s.t, "unknown command", "%s", line)
	}
}

func (s *play) network(a args) {
	c := rigConfig{validators: s.number(a.or("validators", "8")), slot: s.duration(a.or("slot", "4s")), hold: a.has("hold")}
	c.maxChildren = s.number(a.or("children", "2"))
	c.committees = uint64(s.number(a.or("committees", "1")))
	for _, n := range s.indices(a.or("subnets", "0")) {
		c.subnets = append(c.subnets, wire.SubnetID(n))
	}
	c.prover = newFakeProver()
	s.r = newRig(s.t, c)
	names := make(map[string]wire.ValidatorIndex)
	for v := range wire.ValidatorIndex(c.validators) {
		names[string(keyring{s.r.registry}.key(v))] = v
	}
	s.r.prover.onCall = func(j prover.Job) {
		var raw []wire.ValidatorIndex
		for _, r := range j.Raw {
			raw = append(raw, names[string(r.PublicKey)])
		}
		line := fmt.Sprintf("prove slot=%d raw=%s", j.Epoch, list(raw))
		for _, c := range j.Children {
			var members []wire.ValidatorIndex
			for i := range c.Claim.Signers() {
				members = append(members, names[string(c.Claim.Key(i))])
			}
			slices.Sort(members)
			line += " child=" + list(members)
		}
		s.note("%s", line)
	}
	s.r.net.onSent = func(a *wire.SignedAggregate) {
		s.note("publish slot=%d participants=%s", a.Data.Slot, list(a.Participants.Indices()))
	}
}

func (s *play) prover(f *fakeProver, a args) {
	for key, to := range map[string]*time.Duration{"fixed": &f.fixed, "raw": &f.raw, "child": &f.each, "hello": &f.caps.HelloProve} {
		if a.has(key) {
			*to = s.duration(a[key])
		}
	}
	if a.has("max_raw") {
		f.caps.MaxRaw = s.number(a["max_raw"])
	}
	f.caps.ChildrenMayOverlap = f.caps.ChildrenMayOverlap || a.has("overlap")
	f.isReady = a.or("ready", "true") == "true"
	names := map[string]behaviour{
		"proves": proves, "crashes": crashes, "hangs": hangs, "stuck": getsStuck, "lies": lies, "nothing": provesNothing,
		"refuses_vote": refusesVote, "refuses_child": refusesChild, "refuses": refusesAll,
	}
	if a.has("next") {
		for _, n := range strings.Split(a["next"], ",") {
			b, ok := names[n]
			require.True(s.t, ok, n)
			f.next = append(f.next, b)
		}
	}
}

// note adds a line to the journal. The caller may hold any lock of the fakes.
func (s *play) note(format string, a ...any) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.lines = append(s.r.lines, fmt.Sprintf("%7.3f       "+format, append([]any{time.Since(s.r.clock.genesis).Seconds()}, a...)...))
}

func (s *play) news() []string {
	if s.r == nil {
		return nil
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	out := slices.Clone(s.r.lines[s.shown:])
	s.shown = len(s.r.lines)
	return out
}

func (s *play) data(a args) wire.AttestationData {
	slot := s.r.clock.Slot()
	if a.has("slot") {
		slot = wire.Slot(s.number(a["slot"]))
	}
	return dataOf(slot, a.or("data", "a"))
}

func (s *play) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *play) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

// indices reads 0-3,7.
func (s *play) indices(text string) []wire.ValidatorIndex {
	var out []wire.ValidatorIndex
	for _, part := range strings.Split(text, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		for v := s.number(lo); v <= s.number(hi); v++ {
			out = append(out, wire.ValidatorIndex(v))
		}
	}
	return out
}

// list writes 0-3,7.
func list(in []wire.ValidatorIndex) string {
	if len(in) == 0 {
		return "none"
	}
	var parts []string
	for i := 0; i < len(in); {
		j := i
		for j+1 < len(in) && in[j+1] == in[j]+1 {
			j++
		}
		part := strconv.FormatUint(uint64(in[i]), 10)
		if j > i {
			part += "-" + strconv.FormatUint(uint64(in[j]), 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
