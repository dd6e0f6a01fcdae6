package lanes

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
)

// Path is a set of machine instructions that the hashes are computed with. All paths give the same bytes.
type Path uint8

// The paths, slowest first.
const (
	PathUnknown Path = iota
	PathGeneric      // portable Go, one lane after another
	PathAVX2         // 8 lanes of BLAKE2s, 4 of Keccak
	PathAVX512       // 16 lanes of BLAKE2s, 8 of Keccak: AVX-512 F, BW, DQ and VL
)

// pathVariable names the environment variable that lowers the path of a process, for measurements and to rule out a kernel
// as the cause of a fault: AGGNODE_LANES=generic or avx2. A path that the CPU has not gives the best below it.
const pathVariable = "AGGNODE_LANES"

var pathNames = [...]string{PathUnknown: "unknown", PathGeneric: "generic", PathAVX2: "avx2", PathAVX512: "avx512"}

// String is the name used in reports, labels and the environment.
func (p Path) String() string {
	if int(p) >= len(pathNames) {
		p = PathUnknown
	}
	return pathNames[p]
}

// Paths are the paths that this CPU and this build have, slowest first; PathGeneric is always one. The caller owns the slice.
func Paths() []Path { return supportedPaths() }

// current is the path that calls starting now take; refused are the faster ones whose kernels gave wrong bytes at the start.
var current, refused = newCurrent(os.Getenv(pathVariable), agrees)

// Refused are the paths that this CPU has and that are not used because a kernel gave other bytes than portable code: a fault
// of the CPU, of what emulates it, or of a kernel. The caller owns the slice.
func Refused() []Path { return slices.Clone(refused) }

// newCurrent chooses the fastest path that works, or the one that name lowers it to. A name that is none is a mistake of
// whoever set it and must not pass for a lowered path, so it ends the process.
func newCurrent(name string, works func(Path) bool) (current *atomic.Uint32, refused []Path) {
	paths := supportedPaths()
	if name != "" {
		limit := slices.Index(pathNames[:], name)
		if limit < int(PathGeneric) {
			panic(fmt.Sprintf("lanes: %s=%q is no path; known: %q", pathVariable, name, pathNames[PathGeneric:]))
		}
		paths = slices.DeleteFunc(paths, func(p Path) bool { return int(p) > limit })
	}
	best := len(paths) - 1
	for ; best > 0 && !works(paths[best]); best-- {
		refused = append(refused, paths[best])
	}
	current = new(atomic.Uint32)
	current.Store(uint32(paths[best]))
	return current, refused
}

// Current is the path in use.
func Current() Path { return Path(current.Load()) }

// Use changes the path of the whole process and returns the one it replaces. It is for tests and measurements: what runs at
// that moment ends on the path it began with. A path that this CPU has not panics.
func Use(p Path) (previous Path) {
	if !slices.Contains(supportedPaths(), p) {
		panic(fmt.Sprintf("lanes: this CPU or build has no path %s", p))
	}
	return Path(current.Swap(uint32(p)))
}

// Occupancy says how full the lanes were: how many lanes held a hash that somebody wanted, out of how many were computed.
// Portable code computes only what is wanted, so there the two are equal.
type Occupancy struct{ Used, Capacity uint64 }

// Blake2sOccupancy counts lanes of compressions since the process began.
func Blake2sOccupancy() Occupancy { return blake2sLanes.read() }

// KeccakOccupancy counts lanes of permutations since the process began.
func KeccakOccupancy() Occupancy { return keccakLanes.read() }

var blake2sLanes, keccakLanes occupancyCounter

// occupancyCounter is the sum over all goroutines. An addition costs about 10 ns, more under contention, which is much beside
// one call of a kernel: users add up a whole batch of calls in an Occupancy of their own and bring the sum here.
type occupancyCounter struct {
	used, capacity atomic.Uint64
	_              [48]byte // a cache line of its own
}

func (c *occupancyCounter) add(o Occupancy) {
	c.used.Add(o.Used)
	c.capacity.Add(o.Capacity)
}

// read may see an addition half made: the two counts then differ by one batch.
func (c *occupancyCounter) read() Occupancy {
	return Occupancy{Used: c.used.Load(), Capacity: c.capacity.Load()}
}
