package wire

import (
	"crypto/sha256"
	"encoding/binary"
)

// TraceID returns the trace identifier of everything that nodes do about one
// data root in one slot: making aggregates of it and checking them. Every node
// of a network derives the same one, so that their spans are in one trace
// without any exchange. It is public and says nothing of who made a span.
func TraceID(network string, slot Slot, root DataRoot) [16]byte {
	b := binary.LittleEndian.AppendUint64([]byte(network), uint64(slot))
	sum := sha256.Sum256(append(b, root[:]...))

	return [16]byte(sum[:16])
}
