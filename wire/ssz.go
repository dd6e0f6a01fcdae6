package wire

import (
	"encoding/binary"
	"math/bits"
)

// offsetSize is the length in bytes of an SSZ offset.
const offsetSize = 4

// uint64At reads the little-endian number at b[i:i+8].
func uint64At(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// appendUint64 appends v in little-endian order.
func appendUint64(dst []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(dst, v) }

// appendOffset appends an SSZ offset. Encoders call it with sums of lengths
// that are bounded by MaxPayloadSize.
func appendOffset(dst []byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // bounded, see above
}

// splitFields returns the variable-size fields of a container with a fixed part
// of fixed bytes and the offsets at the given positions. It refuses a first
// offset that is not the end of the fixed part, offsets that descend and
// offsets past the end (leanSpec ssz/container.py).
func splitFields(container string, b []byte, fixed int, at ...int) ([][]byte, error) {
	if len(b) < fixed {
		return nil, malformed(container, "%d bytes, at least %d needed", len(b), fixed)
	}
	fields := make([][]byte, len(at))
	start := fixed
	for i, pos := range at {
		off := int64(binary.LittleEndian.Uint32(b[pos:]))
		switch {
		case i == 0 && off != int64(fixed):
			return nil, malformed(container, "first offset %d, must be %d", off, fixed)
		case off < int64(start):
			return nil, malformed(container, "offset %d before %d", off, start)
		case off > int64(len(b)):
			return nil, malformed(container, "offset %d past the end %d", off, len(b))
		}
		if i > 0 {
			fields[i-1] = b[start:off:off]
		}
		start = int(off)
	}
	fields[len(at)-1] = b[start:len(b):len(b)]

	return fields, nil
}

// splitList returns the elements of a list of variable-size elements, each of
// at least minSize bytes. The number of elements is bounded by the input before
// anything is allocated.
func splitList(container string, b []byte, limit, minSize int) ([][]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < offsetSize {
		return nil, malformed(container, "%d bytes cannot hold an offset", len(b))
	}
	first := int64(binary.LittleEndian.Uint32(b))
	n := first / offsetSize
	switch {
	case first%offsetSize != 0 || n == 0:
		return nil, malformed(container, "first offset %d is not a positive multiple of %d", first, offsetSize)
	case n > int64(limit):
		return nil, malformed(container, "%d elements, at most %d allowed", n, limit)
	case n*int64(offsetSize+minSize) > int64(len(b)):
		return nil, malformed(container, "%d elements do not fit %d bytes", n, len(b))
	}
	items := make([][]byte, n)
	start := first
	for i := range items {
		end := int64(len(b))
		if i+1 < len(items) {
			end = int64(binary.LittleEndian.Uint32(b[offsetSize*(i+1):]))
		}
		if end < start || end > int64(len(b)) {
			return nil, malformed(container, "offset %d after offset %d in %d bytes", end, start, len(b))
		}
		items[i] = b[start:end:end]
		start = end
	}

	return items, nil
}

// bitlistLen returns the number of bits of an encoded bitlist: it refuses
// one without a delimiter bit and one of more than limit bits.
func bitlistLen(b []byte, limit int) (int, error) {
	if len(b) == 0 || b[len(b)-1] == 0 {
		return 0, malformed("bitlist", "%d bytes without a delimiter bit", len(b))
	}
	n := 8*(len(b)-1) + bits.Len8(b[len(b)-1]) - 1
	if n > limit {
		return 0, malformed("bitlist", "%d bits, at most %d allowed", n, limit)
	}

	return n, nil
}
