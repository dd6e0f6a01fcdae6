package devnet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// procStat is what /proc/PID/stat says about one process.
type procStat struct {
	parent int
	cpu    time.Duration // its own and that of its children that have ended and were waited for
}

// readProcs reads all processes below root, which is /proc outside tests. Processes that end meanwhile are left out.
func readProcs(root string) (map[int]procStat, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "[0-9]*"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	procs := make(map[int]procStat, len(dirs))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		if s, ok := parseStat(b); ok {
			procs[pid] = s
		}
	}
	return procs, nil
}

// parseStat reads the line of proc(5). The name in brackets may hold anything, so fields are counted from its end.
func parseStat(b []byte) (procStat, bool) {
	_, rest, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(") "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 15 {
		return procStat{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return procStat{}, false
	}
	var ticks int64
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return procStat{}, false
		}
		ticks += n
	}
	return procStat{parent: parent, cpu: time.Duration(ticks) * clockTick}, true
}

// treeCPU is the CPU that the process and everything below it have used.
func treeCPU(procs map[int]procStat, pid int) time.Duration {
	total := procs[pid].cpu
	for child, s := range procs {
		if s.parent == pid && child != pid {
			total += treeCPU(procs, child)
		}
	}
	return total
}

// below counts the processes below one.
func below(procs map[int]procStat, pid int) int {
	n := 0
	for child, s := range procs {
		if s.parent == pid && child != pid {
			n += 1 + below(procs, child)
		}
	}
	return n
}

// cpuMeter measures the CPU of the nodes over the measured slots, by role.
type cpuMeter struct {
	began time.Time
	first []time.Duration // by member
}

// readCPU reads what the members have used, and counts the processes below those that only verify.
func (r *run) readCPU() (used []time.Duration, children int, err error) {
	procs, err := readProcs("/proc")
	if err != nil {
		return nil, 0, err
	}
	used = make([]time.Duration, len(r.procs))
	for i, p := range r.procs {
		used[i] = treeCPU(procs, p.cmd.Process.Pid)
		if r.members[i].committee < 0 {
			children += below(procs, p.cmd.Process.Pid)
		}
	}
	return used, children, nil
}

// byRole is the mean CPU of a node of each role since the meter began, in percent of one core, its children included.
func (m *cpuMeter) byRole(members []member, now []time.Duration, at time.Time) map[string]float64 {
	wall := at.Sub(m.began).Seconds()
	sum, n := map[string]float64{}, map[string]int{}
	for i, mb := range members {
		sum[mb.role()] += (now[i] - m.first[i]).Seconds()
		n[mb.role()]++
	}
	for role := range sum {
		sum[role] = 100 * sum[role] / wall / float64(n[role])
	}
	return sum
}

// role is the label of the node's figures.
func (m member) role() string {
	switch {
	case m.isObserver:
		return "observer"
	case m.committee >= 0:
		return "aggregator"
	}
	return "validator"
}
