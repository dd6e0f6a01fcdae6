package pipeline

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/internal/script"
	"aggnode/wire"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// TestScripts runs testdata/*.txt. A script is a list of steps: a command line,
// a line of four dashes, what happened, an empty line. Time stands still but for
// "advance". The first command is
//
//	new workers=W validators=V [committees=C] [subnets=N]
//
// which starts a pipeline at the start of slot 10; block h1 is known. The others:
//
//	arrive NAME class=attestation|aggregate|block|local-attestation|local-aggregate|check
//	       [slot=S] [peer=P] [v=V or V,V,…] [head=hN] [data=N] [size=BYTES] [bad]
//	finish NAME…      the check that NAME is in returns
//	head hN           block hN is imported
//	advance DURATION
//	give-up NAME      the caller does not wait any longer
//	full | drained    the pool has no room, or has again
//	state             what waits, runs and is parked
//	score P
//	stop
//
// What happened is the journal, in the order of events.
func TestScripts(t *testing.T) {
	t.Parallel()
	script.Files(t, *update, func(t *testing.T, text string) (out string) {
		synctest.Test(t, func(t *testing.T) { out = runScript(t, text) })

		return out
	})
}

// scriptRun is one script on its way.
type scriptRun struct {
	t     *testing.T
	r     *rig
	stop  func()
	names map[string]*Item

	mu      sync.Mutex
	journal []string
	cancel  map[string]func()
	gates   map[any]chan struct{} // calls that wait for finish, by the message
	held    map[string]any        // name of an item to its message
}

func runScript(t *testing.T, text string) string {
	s := &scriptRun{
		t: t, names: make(map[string]*Item), cancel: make(map[string]func()),
		gates: make(map[any]chan struct{}), held: make(map[string]any),
	}
	out := script.Steps(text, s.do, s.happened)
	s.finishAll()
	s.stop()

	return out
}

// happened returns and forgets the journal.
func (s *scriptRun) happened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	journal := s.journal
	s.journal = nil

	return journal
}

func (s *scriptRun) do(words []string) {
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	switch words[0] {
	case "new":
		s.start(args)
	case "arrive":
		s.arrive(words[1], args)
	case "finish":
		for _, name := range words[1:] {
			s.finish(name)
			synctest.Wait()
		}
	case "head":
		root := rootOf(byte(s.number(strings.TrimPrefix(words[1], "h"))))
		s.r.head.learn(root)
		s.r.HeadImported(root)
	case "advance":
		d, err := time.ParseDuration(words[1])
		require.NoError(s.t, err)
		advance(d)
	case "give-up":
		s.cancel[words[1]]()
	case "full", "drained":
		s.r.sink.mu.Lock()
		s.r.sink.full = words[0] == "full"
		s.r.sink.mu.Unlock()
	case "state":
		s.state()
	case "score":
		p := s.r.PeerScore(words[1])
		s.log(fmt.Sprintf("rejected %d, verified %d", p.Rejected, p.Verified))
	case "stop":
		go s.stop()
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
	synctest.Wait()
}

func (s *scriptRun) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)

	return n
}

func (s *scriptRun) start(args map[string]string) {
	s.r = newRig(s.t, clockAt(10, testSlot), func(c *Config) {
		c.Workers, c.Validators = s.number(args["workers"]), s.number(args["validators"])
		if n := args["committees"]; n != "" {
			c.Committees = uint64(s.number(n))
		}
		c.Republish = func(it *Item) { s.log("republish " + s.name(it)) }
		c.journal = func(e event) {
			line := e.what + " " + s.name(e.item)
			if e.what == "end" {
				line += " " + e.item.outcome.Verdict.String() + " " + e.item.outcome.Reason.String()
			}
			s.log(line)
		}
	})
	s.r.verifier.gate = func(_ context.Context, first any) {
		s.mu.Lock()
		gate := make(chan struct{})
		s.gates[first] = gate
		s.mu.Unlock()
		<-gate
	}
	s.stop = s.r.start()
}

func (s *scriptRun) log(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = append(s.journal, line)
}

// name returns the name of an item. Self-checks make their item themselves.
func (s *scriptRun) name(it *Item) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, m := range s.held {
		if m == any(it.Attestation) || m == any(it.Aggregate) || m == any(it.Block) {
			return name
		}
	}

	return "?"
}

func (s *scriptRun) arrive(name string, args map[string]string) {
	slot, head, data, size := 10, 1, 0, 100
	for key, to := range map[string]*int{"slot": &slot, "head": &head, "data": &data, "size": &size} {
		if v := strings.TrimPrefix(args[key], "h"); v != "" {
			*to = s.number(v)
		}
	}
	quality := byte(good)
	if _, ok := args["bad"]; ok {
		quality = bad
	}
	var indices []int
	if args["v"] != "" {
		for v := range strings.SplitSeq(args["v"], ",") {
			indices = append(indices, s.number(v))
		}
	}
	content := dataFor(wire.Slot(slot), byte(head), uint64(data))
	it := &Item{}
	var m any
	switch strings.TrimPrefix(args["class"], "local-") {
	case "attestation":
		it.Attestation = s.r.attestation(indices[0], content, quality)
		m = it.Attestation
	case "aggregate", "check":
		it.Aggregate = s.r.aggregate(content, size, quality, indices...)
		m = it.Aggregate
	case "block":
		it.Block = s.r.block(wire.Slot(slot), quality)
		m = it.Block
	default:
		s.t.Fatalf("no class %q", args["class"])
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel[name] = cancel
	switch {
	case args["class"] == "check":
		s.hold(name, m)
		go s.r.CheckAggregate(ctx, it.Aggregate)
	case strings.HasPrefix(args["class"], "local-"):
		s.hold(name, m)
		go s.r.SubmitLocal(ctx, it)
	default:
		topic, payload := s.r.encode(m)
		screened, out := s.r.Screen(topic, args["peer"], payload)
		if screened == nil {
			s.log(fmt.Sprintf("screened %s %v %v", name, out.Verdict, out.Reason))

			return
		}
		if screened.Attestation != nil {
			s.hold(name, screened.Attestation)
		} else if screened.Aggregate != nil {
			s.hold(name, screened.Aggregate)
		} else {
			s.hold(name, screened.Block)
		}
		go s.r.Submit(ctx, screened)
	}
}

func (s *scriptRun) hold(name string, m any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = m
}

// finish opens the gate of the call that an item leads.
func (s *scriptRun) finish(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, ok := s.gates[s.held[name]]
	if !ok {
		s.journal = append(s.journal, name+" leads no call")

		return
	}
	delete(s.gates, s.held[name])
	close(gate)
}

// finishAll lets all calls return, now and later.
func (s *scriptRun) finishAll() {
	for {
		s.mu.Lock()
		n := len(s.gates)
		for m, gate := range s.gates {
			delete(s.gates, m)
			close(gate)
		}
		s.mu.Unlock()
		if n == 0 {
			return
		}
		synctest.Wait()
	}
}

// state prints where the items are.
func (s *scriptRun) state() {
	p := s.r.Pipeline
	places := map[string][]*Item{}
	p.mu.Lock()
	p.queue.waiting(func(it *Item) {
		place := it.Class.String() + " " + it.state.String()
		if it.Class == ClassLocal {
			place = "local " + it.kind.String() + " " + it.state.String()
		}
		places[place] = append(places[place], it)
	})
	p.park.each(func(it *Item) {
		place := fmt.Sprintf("%s parked h%d", it.kind, it.missing[0])
		places[place] = append(places[place], it)
	})
	running := fmt.Sprintf("running: block %d, attestation %d, aggregate %d, local %d; busy %d",
		p.queue.running[ClassBlock], p.queue.running[ClassAttestation], p.queue.running[ClassAggregate],
		p.queue.running[ClassLocal], p.queue.busy)
	p.mu.Unlock()
	var lines []string
	for place, items := range places {
		var names []string
		for _, it := range items {
			names = append(names, s.name(it))
		}
		lines = append(lines, place+": "+strings.Join(names, " "))
	}
	slices.Sort(lines)
	for _, l := range append([]string{running}, lines...) {
		s.log(l)
	}
}
