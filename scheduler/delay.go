package scheduler

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// delayLeast is the running time of all threads between two looks below which their waiting says nothing: an idle
// process that is woken twice has run for microseconds, and one unlucky wake-up would look like a stall.
const delayLeast = 5 * time.Millisecond

// runDelay reads how long the threads of this process stood in line for a CPU. All of them count, since the runtime moves
// goroutines, those that check votes too, from thread to thread; provers are processes of their own. The sums are taken
// before the ratio, so a thread weighs as much as it ran or waited, and an idle one nothing. Owned by one goroutine.
type runDelay struct {
	proc string
	last map[int]threadTime // by thread id
}

// threadTime is what /proc/self/task/TID/schedstat says.
type threadTime struct{ run, wait time.Duration }

// look returns the time in line over the running time of the threads since the last look; 0 at the first, and where
// nothing can be said.
func (r *runDelay) look() float64 {
	tasks := filepath.Join(r.proc, "self", "task")
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return 0
	}
	now := make(map[int]threadTime, len(entries))
	var run, wait time.Duration
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tasks, e.Name(), "schedstat"))
		if err != nil {
			continue // ended, or a kernel without these figures
		}
		t, ok := parseSchedstat(string(text))
		if !ok {
			continue
		}
		now[tid] = t
		// Less than before is another thread under a number used again.
		if before, known := r.last[tid]; known && t.run >= before.run && t.wait >= before.wait {
			run += t.run - before.run
			wait += t.wait - before.wait
		}
	}
	r.last = now
	if run < delayLeast {
		return 0
	}
	return float64(wait) / float64(run)
}

// parseSchedstat reads "RUN WAIT SLICES", the first two in nanoseconds.
func parseSchedstat(text string) (threadTime, bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return threadTime{}, false
	}
	run, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || run < 0 {
		return threadTime{}, false
	}
	wait, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || wait < 0 {
		return threadTime{}, false
	}
	return threadTime{run: time.Duration(run), wait: time.Duration(wait)}, true
}
