package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of /proc/PID/stat: USER_HZ, 100 a second in the interface of every Linux architecture.
const clockTick = time.Second / 100

// ownCPU returns the CPU that this process has used, all threads.
func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // can not be for these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// collectorMetric is the CPU of the Go runtime's collector, idle workers included: idle here is not idle for the children.
const collectorMetric = "/cpu/classes/gc/total:cpu-seconds"

// collectorCPU returns the CPU that the collector of this process has used, as of the last collection that ended.
func collectorCPU() time.Duration {
	sample := []metrics.Sample{{Name: collectorMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64 {
		return 0 // a runtime that does not know the name
	}
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}

// processCPU returns the CPU that a process has used, to 10 ms; 0 for one that is gone.
func processCPU(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return parseStatCPU(b)
}

// parseStatCPU reads user and system time out of /proc/PID/stat; the name in parentheses may hold anything.
func parseStatCPU(stat []byte) time.Duration {
	const userTime = 11 // fields after the name: state is 0
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= userTime+1 {
		return 0
	}
	var ticks int64
	for _, f := range fields[userTime : userTime+2] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

// resetPeak sets the peak memory of a process back to what it holds now.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// peakMemory returns the peak resident memory in bytes of a process since its start or resetPeak.
func peakMemory(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return kibibytes(b, "VmHWM"), nil
}

// kibibytes finds "name: N kB" and returns bytes, 0 where it is not.
func kibibytes(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}

// cpuModel returns the name of the processor.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
