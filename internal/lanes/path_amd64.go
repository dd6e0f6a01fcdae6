//go:build !purego

package lanes

import "golang.org/x/sys/cpu"

func supportedPaths() []Path {
	paths := []Path{PathGeneric}
	x := &cpu.X86
	if x.HasAVX2 && x.HasBMI1 && x.HasBMI2 {
		paths = append(paths, PathAVX2)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			paths = append(paths, PathAVX512)
		}
	}
	return paths
}
