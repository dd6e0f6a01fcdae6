package gf

// Path is a set of machine instructions that products are computed with. All paths give the same results.
type Path uint8

// The paths, slowest first.
const (
	PathUnknown       Path = iota
	PathGeneric            // portable Go
	PathPCLMULQDQ          // one carry-less product an instruction: PCLMULQDQ and AVX
	PathVPCLMULQDQ256      // two of them in sums over columns: VPCLMULQDQ and AVX2
	PathVPCLMULQDQ512      // four of them in sums over columns: VPCLMULQDQ and AVX-512 F, DQ, VL
)

var pathNames = [...]string{
	PathUnknown: "unknown", PathGeneric: "generic", PathPCLMULQDQ: "pclmulqdq",
	PathVPCLMULQDQ256: "vpclmulqdq-256", PathVPCLMULQDQ512: "vpclmulqdq-512",
}

// String is the name used in reports.
func (p Path) String() string {
	if int(p) >= len(pathNames) {
		p = PathUnknown
	}
	return pathNames[p]
}

// path is the one in use, the best that CPU and build have. Only tests change it.
var path = best()

// Current is the path in use.
func Current() Path { return path }
