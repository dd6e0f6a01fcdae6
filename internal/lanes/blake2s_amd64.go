//go:build !purego

package lanes

import "math/bits"

// wideLanes is the number of lanes that a wide kernel computes for a set of used ones, or 0 when it is faster to compute them
// one after another: portable code, and one lane alone without the instructions of AVX-512.
func wideLanes(p Path, used LaneSet) (n int) {
	switch {
	case p == PathGeneric || used == 0:
	case p == PathAVX512:
		if _, isQuarter := quarter(used); isQuarter {
			return Blake2sWidth / 4
		}
		return Blake2sWidth
	case used.Len() > 1:
		halves(used, func(uint64) { n += Blake2sWidth / 2 })
	}
	return n
}

// halves calls do with the offset in a row, in bytes, of each half that has a used lane.
func halves(used LaneSet, do func(offset uint64)) {
	const half = Blake2sWidth / 2
	if used&(1<<half-1) != 0 {
		do(0)
	}
	if used>>half != 0 {
		do(half * 4)
	}
}

// quarter is the offset in a row, in bytes, of the only quarter with used lanes, if there is just one.
func quarter(used LaneSet) (offset uint64, ok bool) {
	const width = Blake2sWidth / 4
	q := bits.TrailingZeros16(uint16(used)) / width
	return uint64(q * width * 4), used>>(q*width) < 1<<width
}

func absorbWide(p Path, h *Blake2sStates, m *Blake2sWide, total uint32, last bool, used LaneSet) {
	var final uint32 // what a last block inverts in the work vector
	if last {
		final = ^final
	}
	states, block := (*[8]Blake2sRow)(h), (*[16]Blake2sRow)(m)
	if p == PathAVX512 {
		if offset, isQuarter := quarter(used); isQuarter {
			blake2sAbsorbQuad(states, block, total, final, offset)
		} else {
			blake2sAbsorbAVX512(states, block, total, final)
		}
		return
	}
	halves(used, func(offset uint64) { blake2sAbsorbAVX2(states, block, total, final, offset) })
}

func walkWide(p Path, m *Blake2sWide, steps int, used LaneSet) {
	block := (*[16]Blake2sRow)(m)
	if p == PathAVX512 {
		if offset, isQuarter := quarter(used); isQuarter {
			blake2sWalkQuad(block, uint64(steps), offset)
		} else {
			blake2sWalkAVX512(block, uint64(steps))
		}
		return
	}
	halves(used, func(offset uint64) { blake2sWalkAVX2(block, uint64(steps), offset) })
}

func climbWide(p Path, m *Blake2sWide, siblings []Blake2sRow, used LaneSet) {
	block, first, levels := (*[16]Blake2sRow)(m), (*[4]Blake2sRow)(siblings), uint64(len(siblings)/4)
	if p == PathAVX512 {
		if offset, isQuarter := quarter(used); isQuarter {
			blake2sClimbQuad(block, first, levels, offset)
		} else {
			blake2sClimbAVX512(block, first, levels)
		}
		return
	}
	halves(used, func(offset uint64) { blake2sClimbAVX2(block, first, levels, offset) })
}

func tryWide(p Path, out *Blake2sOutcome, t *Blake2sTrials, begun *Blake2sStates) {
	suffix, digest := &out.Suffix, &out.Digest
	states, prefix := (*[8]Blake2sRow)(begun), (*[8]uint32)(&t.Prefix)
	if p == PathAVX512 {
		blake2sTrialsAVX512(suffix, digest, states, &t.Second, prefix)
		return
	}
	halves(FirstLanes(Blake2sWidth), func(offset uint64) {
		blake2sTrialsAVX2(suffix, digest, states, &t.Second, prefix, offset)
	})
}

// gathersWide says whether so few lanes are not read sooner one by one.
func gathersWide(p Path, used LaneSet) bool { return p != PathGeneric && used.Len() > 2 }

func gatherWide(p Path, rows []Blake2sRow, from []byte, stride uint32, used LaneSet) {
	first, next, count := (*[4]Blake2sRow)(rows), uint64(stride), uint64(len(rows)/4)
	const half = Blake2sWidth / 2
	if p == PathAVX512 && used&(1<<half-1) != 0 && used>>half != 0 {
		blake2sGatherAVX512(first, &from[0], next, count)
		return
	}
	halves(used, func(offset uint64) { blake2sGatherAVX2(first, &from[offset/4*next], next, count, offset) })
}

func advanceWide(p Path, o *Blake2sOwners, values []byte, stride uint32, chains []Blake2sChain, steps int) {
	n := len(chains)
	if _, isQuarter := quarter(FirstLanes(n)); p == PathAVX512 && isQuarter {
		advanceQuad(o, values, stride, chains, steps)
		return
	}
	if n < Blake2sWidth { // a chain that stands in several lanes gets the same value in each
		var full [Blake2sWidth]Blake2sChain
		for k := copy(full[:], chains); k < len(full); k++ {
			full[k] = chains[n-1]
		}
		chains = full[:]
	}
	m := (*[16]Blake2sRow)(&o.working)
	if p == PathAVX512 {
		blake2sAdvanceAVX512(m, &o.Words, &values[0], stride, (*uint16)(&chains[0]), uint64(steps))
		return
	}
	for k := 0; k < n; k += Blake2sWidth / 2 {
		blake2sAdvanceAVX2(m, &o.Words, &values[0], stride, (*uint16)(&chains[k]), uint64(steps))
	}
}

// advanceQuad is Advance for at most four chains.
func advanceQuad(o *Blake2sOwners, values []byte, stride uint32, chains []Blake2sChain, steps int) {
	m := &o.working
	for k, c := range chains {
		block := o.block(c, values[c.value(stride):])
		m.setLane(k, &block)
	}
	blake2sWalkQuad((*[16]Blake2sRow)(m), uint64(steps), 0)
	for k, c := range chains {
		block := m.lane(k)
		putWords(values[c.value(stride):], block[8:12])
	}
}
