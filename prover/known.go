package prover

import (
	_ "embed"
	"encoding/hex"
	"slices"
)

// Known answers by scheme: material whose verdict this program knows without asking anybody. Equal sizes do not make
// equal schemes, so agreement is shown on these at each hello. known/ORIGIN says where they come from.

//go:embed known/keccak-0.sig
var keccakSig0 []byte

//go:embed known/keccak-1.sig
var keccakSig1 []byte

//go:embed known/keccak-two.proof
var keccakTwo []byte

//go:embed known/blake2s-0.sig
var blake2sSig0 []byte

//go:embed known/blake2s-1.sig
var blake2sSig1 []byte

// material is what is known of one scheme: two signatures of two keys over one claim and, where one exists, the proof
// of both.
type material struct {
	scheme string
	claim  Claim
	raw    []Raw
	proof  []byte // nil where no proof of the scheme is known
}

// knownMaterial returns the material of all schemes.
func knownMaterial() []material {
	return []material{
		newMaterial("keccak", 7, "1d1d9dc8f2d6516f477dc5d1bf1048a15e1378a8fa802e1fb874e2a91337f439",
			"3ae358d01b96d7ca6dd9dd5bc7683b860111dafedf7a9be6717c2100d622acf0", keccakSig0,
			"54622451a82ab400e3878419201f08be1fb401e26e452b3bd8362803470f2ae9", keccakSig1, keccakTwo),
		newMaterial("blake2s", 37, "23b2bb988cc783af47da9c4c07254499473122f7cc611b59df311853d3a7a668",
			"8617069c344d569eeb15700406fe6060a8cea0926661340a4c2484c10554e8ae", blake2sSig0,
			"d38ac81fc109de8741eb78e0c988394845c80c53258907270f6252e16cc35f90", blake2sSig1, nil),
	}
}

func newMaterial(scheme string, epoch uint32, message, key0 string, sig0 []byte, key1 string, sig1, proof []byte) material {
	keys := [][]byte{unhex(key0), unhex(key1)}
	m := material{scheme: scheme, claim: Claim{Epoch: epoch}, proof: proof, raw: []Raw{
		{PublicKey: keys[0], Signature: sig0}, {PublicKey: keys[1], Signature: sig1},
	}}
	copy(m.claim.Message[:], unhex(message))
	m.claim.SignerSet = slices.Concat(keys...)
	return m
}

// unhex decodes a constant of this file; a test covers them all.
func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic("known answer: " + err.Error())
	}
	return b
}

// materialOf returns the material of a scheme.
func materialOf(scheme string) (material, bool) {
	for _, m := range knownMaterial() {
		if m.scheme == scheme {
			return m, true
		}
	}
	return material{}, false
}

// expectation is a known answer with the verdict that a right child gives.
type expectation struct {
	known
	sound bool
	name  string
}

// expectations lists what a hello asks about a scheme; all of them where scheme is empty.
func expectations(scheme string) []expectation {
	var out []expectation
	for _, m := range knownMaterial() {
		if scheme != "" && m.scheme != scheme {
			continue
		}
		one := Claim{Message: m.claim.Message, Epoch: m.claim.Epoch, SignerSet: m.raw[0].PublicKey}
		other := one
		other.Message[0] ^= 1
		sig := m.raw[0].Signature
		add := func(name string, sound bool, what uint8, c Claim, b []byte) {
			out = append(out, expectation{known{m.scheme, what, c, b}, sound, name})
		}
		add("a sound signature", true, knownSignature, one, sig)
		add("a signature with one bit changed", false, knownSignature, one, flipBit(sig, len(sig)/3))
		add("a signature of another message", false, knownSignature, other, sig)
		if m.proof != nil {
			add("a sound proof", true, knownProof, m.claim, m.proof)
			add("a proof with one bit changed", false, knownProof, m.claim, flipBit(m.proof, len(m.proof)/2))
		}
	}
	return out
}

// flipBit returns a copy of b with the lowest bit of byte i changed.
func flipBit(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 1
	return b
}
