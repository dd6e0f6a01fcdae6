package wire

import "encoding/hex"

// Slot counts slots since genesis; genesis is slot 0. A slot read from the
// network may be any 64-bit value, so compare in slots and never multiply.
type Slot uint64

// Interval is the fifth of a slot that time is in, 0 to 4.
type Interval uint8

// Epoch is the XMSS leaf number of a signature. It equals the slot as a 32-bit
// number and has nothing to do with the epochs of other chains.
type Epoch uint32

// ValidatorIndex is the position of a validator in the registry.
type ValidatorIndex uint64

// SubnetID names an attestation committee and the topic that carries its votes.
type SubnetID uint64

// Root is a hash tree root that is not the root of attestation data: of a
// block, a state or a block body.
type Root [32]byte

// DataRoot is the hash tree root of an [AttestationData]: the message that
// validators sign and that a claim is about.
type DataRoot [32]byte

// Epoch returns the XMSS leaf number of the slot; ok is false above 2^32-1,
// where no signature can exist.
func (s Slot) Epoch() (epoch Epoch, ok bool) {
	if s > Slot(^Epoch(0)) {
		return 0, false
	}

	return Epoch(s), true
}

// String returns the root as 0x and 64 hexadecimal digits.
func (r Root) String() string { return "0x" + hex.EncodeToString(r[:]) }

// Short returns the first four bytes in hexadecimal, the form of logs.
func (r Root) Short() string { return hex.EncodeToString(r[:4]) }

// IsZero reports whether all bytes are zero.
func (r Root) IsZero() bool { return r == Root{} }

// String returns the root as 0x and 64 hexadecimal digits.
func (r DataRoot) String() string { return "0x" + hex.EncodeToString(r[:]) }

// Short returns the first four bytes in hexadecimal, the form of logs.
func (r DataRoot) Short() string { return hex.EncodeToString(r[:4]) }
