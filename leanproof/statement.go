package leanproof

import (
	"aggnode/internal/lanes"
	"aggnode/leanproof/internal/gf"
)

// digest is the stage "statement": the digest of what the proof is about. It binds the version of the prover, the lists of
// claims, and the claim on the guest's table that was carried over from the proofs inside: its point stands in the proof, and
// value is the table's true value there. The list of data availability roots is empty, which decode saw to. It assumes nothing
// and checks nothing: a statement that the prover did not prove gives other challenges.
func (p *parts) digest(seed digest, value gf.E) digest {
	xmss, sphincs := hashBytes(p.xmss), hashBytes(p.sphincs)
	var lists [8]uint64
	copy(lists[:4], xmss[:])
	copy(lists[4:], sphincs[:])
	signers := hashWords(lists[:])
	roots := hashBytes(nil)

	var cells [3*4 + 3*(pointSize+1)]uint64
	copy(cells[0:], seed[:])
	copy(cells[4:], signers[:])
	copy(cells[8:], roots[:])
	for i := range 3 * pointSize {
		cells[12+i] = word(p.point, i)
	}
	cells[12+3*pointSize], cells[13+3*pointSize], cells[14+3*pointSize] = value.C0, value.C1, value.C2
	return hashWords(cells[:])
}

// hashWords is Keccak-256 of words in little-endian order.
func hashWords(words []uint64) digest {
	var a lanes.KeccakState
	for len(words) >= lanes.KeccakRate {
		a.Absorb((*[lanes.KeccakRate]uint64)(words))
		words = words[lanes.KeccakRate:]
	}
	a.Finish(words)
	return digest(a[:4])
}

// hashBytes is Keccak-256 of b, whose length is a multiple of 8.
func hashBytes(b []byte) digest {
	var (
		a     lanes.KeccakState
		block [lanes.KeccakRate]uint64
	)
	for len(b) >= 8*lanes.KeccakRate {
		for i := range block {
			block[i] = word(b, i)
		}
		a.Absorb(&block)
		b = b[8*lanes.KeccakRate:]
	}
	n := len(b) / 8
	for i := range n {
		block[i] = word(b, i)
	}
	a.Finish(block[:n])
	return digest(a[:4])
}
