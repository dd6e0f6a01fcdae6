package lanes

// sample is what each kernel made of one input.
type sample struct {
	absorbed        Blake2sStates
	walked, climbed Blake2sWide
	tried           Blake2sOutcome
	permuted        KeccakWide
}

// agrees reports whether the kernels of a path give the bytes of portable code, on one input each. Tests compare them on
// millions, but on the CPUs that those who run the tests have. It takes some 100 us, once a process.
func agrees(p Path) bool { return sampleOf(p) == sampleOf(PathGeneric) }

func sampleOf(p Path) (s sample) {
	const all = LaneSet(1<<Blake2sWidth - 1)
	var words Blake2sWide
	for w := range words {
		for k := range words[w] {
			words[w][k] = uint32(w*Blake2sWidth+k+1) * 0x9e3779b9
		}
	}
	b := Blake2s{path: p}
	s.absorbed.Reset()
	b.Absorb(&s.absorbed, &words, 64, false, all)
	s.walked, s.climbed = words, words
	for _, w := range []int{2, 12, 13, 14, 15} {
		s.walked[w] = Blake2sRow{}
	}
	b.Walk(&s.walked, 3, all)
	s.climbed[2] = Blake2sRow{}
	b.Climb(&s.climbed, words[:12], all)
	clear(s.climbed[12:]) // a call leaves anything there
	var trials Blake2sTrials
	for w := range trials.Second {
		for k := range trials.Second[w] {
			trials.Second[w][k] = words[w][0] // the same in all lanes
		}
		trials.Prefix[w] = words[w][1]
	}
	b.Try(&s.tried, &trials, &s.absorbed)
	for w := range s.permuted {
		for l := range s.permuted[w] {
			s.permuted[w][l] = uint64(w*KeccakLanes+l+1) * 0x9e3779b97f4a7c15
		}
	}
	permuteWide(p, &s.permuted, KeccakLanes)
	return s
}
