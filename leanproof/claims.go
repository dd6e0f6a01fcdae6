package leanproof

import (
	"bytes"
	"encoding/binary"
)

// claimSize is the length in bytes of a claim in a proof: public key, then message.
const claimSize = 64

// Claim says that a valid signature of Message under PublicKey was known to the prover. At which epoch it was made is no part
// of it.
type Claim struct {
	PublicKey [32]byte
	Message   [32]byte
}

// Claims is all that a proof asserts. Both lists are strictly ascending by public key, then message.
type Claims struct {
	XMSS    []Claim // leanXMSS, the scheme of validators
	SPHINCS []Claim // leanSPHINCS: listed, never accepted by Verify
}

// claimList is a list of claims inside a proof: a multiple of claimSize bytes, not copied.
type claimList []byte

func (l claimList) len() int { return len(l) / claimSize }

func (l claimList) at(i int) []byte { return l[i*claimSize : (i+1)*claimSize] }

// isAscending reports whether each claim is greater than the one before it.
func (l claimList) isAscending() bool {
	for i := 1; i < l.len(); i++ {
		if bytes.Compare(l.at(i-1), l.at(i)) >= 0 {
			return false
		}
	}
	return true
}

// equal reports whether the list holds exactly the claims of want, in its order.
func (l claimList) equal(want []Claim) bool {
	if l.len() != len(want) {
		return false
	}
	for i := range want {
		c := l.at(i)
		if !bytes.Equal(c[:32], want[i].PublicKey[:]) || !bytes.Equal(c[32:], want[i].Message[:]) {
			return false
		}
	}
	return true
}

func (l claimList) copy() []Claim {
	if len(l) == 0 {
		return nil
	}
	out := make([]Claim, l.len())
	for i := range out {
		c := l.at(i)
		copy(out[i].PublicKey[:], c)
		copy(out[i].Message[:], c[32:])
	}
	return out
}

// ParseClaims lists the claims that a proof makes WITHOUT checking the proof: it says what the bytes say, nothing more. The
// encoding is checked to its last byte, and the order of the claims; what it returns shares no memory with proof.
// The error is a Refusal.
func ParseClaims(proof []byte) (Claims, error) {
	var p parts
	if err := p.decode(proof); err != nil {
		return Claims{}, err
	}
	if err := p.checkClaims(); err != nil {
		return Claims{}, err
	}
	return p.claims(), nil
}

func (p *parts) claims() Claims { return Claims{XMSS: p.xmss.copy(), SPHINCS: p.sphincs.copy()} }

// checkClaims is the stage "claims" for a proof whose claims are not known: there is one at least, and the lists are sets.
func (p *parts) checkClaims() error {
	if len(p.xmss)+len(p.sphincs) == 0 || !p.xmss.isAscending() || !p.sphincs.isAscending() {
		return SignerSet
	}
	return nil
}

// checkWanted is the stage "claims" for a proof whose claims must be exactly want.
func (p *parts) checkWanted(want *Claims) error {
	if len(p.sphincs) != 0 {
		return OtherScheme
	}
	if len(want.SPHINCS) != 0 || !p.xmss.equal(want.XMSS) {
		return ClaimMismatch
	}
	return nil
}

// word reads the i-th little-endian word of b.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
