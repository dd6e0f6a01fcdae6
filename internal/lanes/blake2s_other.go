//go:build !amd64 || purego

package lanes

// wideLanes says that there is no wide kernel; so no call of one is ever made.
func wideLanes(Path, LaneSet) int { return 0 }

const noWideKernel = "lanes: a call to a kernel that is not there"

func absorbWide(Path, *Blake2sStates, *Blake2sWide, uint32, bool, LaneSet) { panic(noWideKernel) }
func walkWide(Path, *Blake2sWide, int, LaneSet)                            { panic(noWideKernel) }
func climbWide(Path, *Blake2sWide, []Blake2sRow, LaneSet)                  { panic(noWideKernel) }
func tryWide(Path, *Blake2sOutcome, *Blake2sTrials, *Blake2sStates)        { panic(noWideKernel) }

// gathersWide says the same of the call that moves bytes.
func gathersWide(Path, LaneSet) bool { return false }

func gatherWide(Path, []Blake2sRow, []byte, uint32, LaneSet) { panic(noWideKernel) }

func advanceWide(Path, *Blake2sOwners, []byte, uint32, []Blake2sChain, int) { panic(noWideKernel) }
