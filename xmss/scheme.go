package xmss

import (
	"errors"
	"fmt"
)

// Sizes that the schemes share, in bytes.
const (
	PublicKeySize = 32 // Merkle root 16 | public parameter 16
	MessageSize   = 32 // a hash tree root

	nodeSize = 16 // a tree node, a chain value and a digest: half of a 256-bit hash output
)

// Errors of a check. A caller branches on them with errors.Is; they carry no detail because the bytes come from outside.
var (
	// ErrScheme: the scheme is not one of this package.
	ErrScheme = errors.New("unknown signature scheme")
	// ErrLength: the signature has not the length of its scheme.
	ErrLength = errors.New("signature has the wrong length")
	// ErrEpoch: the signature names another epoch than the one it is checked for (scheme keccak carries its leaf index).
	ErrEpoch = errors.New("signature is for another epoch")
	// ErrCodeword: the digest of the message under the signature's randomizer is not admissible: a spare bit is set or the
	// digits have the wrong sum.
	ErrCodeword = errors.New("signature digest is not a codeword")
	// ErrRoot: the signature does not lead to the root of the public key.
	ErrRoot = errors.New("signature does not reach the root of the public key")
)

// Scheme is one parameter set. The zero value is invalid.
type Scheme uint8

// The schemes. Their sizes do not identify them: an older line of the network has the sizes of Blake2s.
const (
	SchemeUnknown Scheme = iota
	// Blake2s is the scheme of the Ethereum XMSS specification (ethereum/cryptography-specs): one tree of height 32.
	Blake2s
	// Keccak is the leanXMSS of leanVM as packaged by py-lean-pq 0.7: two trees of height 16.
	Keccak
)

// params are what code above the hashing of either scheme needs of it; the numbers of the hashing stand in blake2s.go and keccak.go.
type params struct {
	name          string
	signatureSize int   // bytes
	treeShift     uint  // epochs that differ only below this bit share the verified upper part
	mostEpochs    int64 // that one key may cover
}

var schemes = [...]params{
	SchemeUnknown: {name: "unknown"},
	Blake2s: {
		name:          "blake2s",
		signatureSize: b2SignatureSize,
		treeShift:     subtreeHeight,
		mostEpochs:    1 << 18, // keeps the level-9 row of a key file below 8 KiB: 513 nodes at most
	},
	Keccak: {
		name:          "keccak",
		signatureSize: kcSignatureSize,
		treeShift:     kcHeight,
		mostEpochs:    1 << 32, // all of them
	},
}

// SchemeByName finds a scheme by the name that String gives.
func SchemeByName(name string) (Scheme, error) {
	for s := Blake2s; int(s) < len(schemes); s++ {
		if schemes[s].name == name {
			return s, nil
		}
	}
	return SchemeUnknown, fmt.Errorf("%w %q (known: %s, %s)", ErrScheme, name, Blake2s, Keccak)
}

// String is the name used in configuration, logs and labels.
func (s Scheme) String() string { return s.params().name }

// SignatureSize is the length of every signature of the scheme in bytes: 1208 for blake2s, 2404 for keccak, 0 for a scheme
// that is none.
func (s Scheme) SignatureSize() int { return s.params().signatureSize }

// Valid reports whether s is a scheme of this package.
func (s Scheme) Valid() bool { return s == Blake2s || s == Keccak }

func (s Scheme) params() *params {
	if !s.Valid() {
		s = SchemeUnknown
	}
	return &schemes[s]
}

// PublicKey is the root of the key's tree followed by its public parameter, 16 bytes each. Any 32 bytes are a public key.
type PublicKey [PublicKeySize]byte

// node is a tree node, a chain value or a digest.
type node [nodeSize]byte
