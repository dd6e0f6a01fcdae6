//go:build !amd64 || purego

package lanes

// wideLanes says that there is no wide kernel; so none of the calls below is ever made.
func wideLanes(Path, LaneSet) int { return 0 }

const noWideKernel = "lanes: a call to a kernel that is not there"

func absorbWide(Path, *Blake2sStates, *Blake2sWide, uint32, bool, LaneSet) { panic(noWideKernel) }
func walkWide(Path, *Blake2sWide, int, LaneSet)                            { panic(noWideKernel) }
func climbWide(Path, *Blake2sWide, []Blake2sSiblings, LaneSet)             { panic(noWideKernel) }
func tryWide(Path, *Blake2sOutcome, *Blake2sTrials, uint32)                { panic(noWideKernel) }
