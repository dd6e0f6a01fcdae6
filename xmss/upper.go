package xmss

import "bytes"

// UpperKey names the upper part of a key's tree that the signatures of neighbouring epochs share. It is comparable and
// meant as a map key.
type UpperKey struct {
	PublicKey PublicKey
	Tree      uint32 // epoch >> 9 for blake2s, epoch >> 16 for keccak
}

// UpperKey is the name of the upper part that a signature of pk at epoch goes through. For a scheme that is none, the zero
// value.
func (s Scheme) UpperKey(pk PublicKey, epoch uint32) UpperKey {
	if !s.Valid() {
		return UpperKey{}
	}
	return UpperKey{PublicKey: pk, Tree: epoch >> s.params().treeShift}
}

// Upper is an upper part that was seen to lead from a node to the root of its public key: for blake2s the siblings of
// levels 9..31 and the node of level 9 they start from, for keccak the top layer's part of the signature and the bottom root
// that it signs. A later signature that shows the same bytes and reaches the same node needs no second look above it.
//
// Only a successful check makes one. It is immutable and may be shared.
type Upper struct {
	scheme Scheme
	key    UpperKey
	from   node   // reached from below by every signature of this part
	part   []byte // as in the signature: 368 or 1200 bytes
}

// Key is the name under which a cache keeps u.
func (u *Upper) Key() UpperKey { return u.key }

// Size is about the memory that u takes, in bytes.
func (u *Upper) Size() int { return 96 + len(u.part) }

// matches reports whether the part of a signature of (pk, epoch) that starts at from is the one u stands for.
func (u *Upper) matches(s Scheme, c *Check, from *node, part []byte) bool {
	return u != nil && u.scheme == s && u.key == s.UpperKey(c.PublicKey, c.Epoch) && u.from == *from && bytes.Equal(u.part, part)
}

// newUpper makes one allocation: the bytes of the part lie behind what refers to them.
func newUpper(s Scheme, c *Check, from *node, part []byte) *Upper {
	var u *Upper
	switch s {
	case Blake2s:
		whole := new(struct {
			Upper
			part [b2SignatureSize - b2UpperAt]byte
		})
		u, whole.Upper.part = &whole.Upper, whole.part[:]
	case Keccak:
		whole := new(struct {
			Upper
			part [kcSignatureSize - kcTopAt]byte
		})
		u, whole.Upper.part = &whole.Upper, whole.part[:]
	case SchemeUnknown: // its checks are refused
	}
	u.scheme, u.key, u.from = s, s.UpperKey(c.PublicKey, c.Epoch), *from
	copy(u.part, part)
	return u
}
