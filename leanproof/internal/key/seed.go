package key

import (
	"encoding/binary"

	"aggnode/internal/lanes"
)

// protocol is the label of the proof system in the prover's library: it names the reduction, the guest's table the program.
const protocol = "leanVM keccak GKR: keccak-f in two cell layouts, depth 12, packs of 16 in degree 23, " +
	"lane slots then table columns, output claimed by the bus"

// TranscriptSeed computes the seed of the key's transcripts,
//
//	Keccak256("leanvm" | u64 32 | Keccak256(protocol) | Keccak256(table)),
//
// from the key's instructions: it hashes the table's 64 MiB (a quarter of a second), which is why a key that is loaded
// carries its seed. It shows that the key is the one that the seed names.
func (k *Key) TranscriptSeed() [32]byte {
	var h hash
	for slot := range Slots {
		k.table.slot(slot, func(words *[blockSize]uint64) {
			for _, w := range words {
				h.word(w)
			}
		})
	}
	table := h.sum(nil)
	label := new(hash).sum([]byte(protocol))
	text := binary.LittleEndian.AppendUint64([]byte("leanvm"), uint64(len(label)))
	text = append(text, label[:]...)
	return new(hash).sum(append(text, table[:]...))
}

// hash is Keccak-256 of a message that comes in words.
type hash struct {
	state lanes.KeccakState
	block [lanes.KeccakRate]uint64
	n     int
}

func (h *hash) word(w uint64) {
	h.block[h.n] = w
	if h.n++; h.n == len(h.block) {
		h.state.Absorb(&h.block)
		h.n = 0
	}
}

// sum takes the message's last bytes, of any number, and returns the digest.
func (h *hash) sum(tail []byte) [32]byte {
	const first, last = 0x01, 0x80 << 56 // the padding of Keccak-256
	tail = append(tail[:len(tail):len(tail)], first)
	for len(tail)%8 != 0 {
		tail = append(tail, 0)
	}
	for ; len(tail) > 8; tail = tail[8:] {
		h.word(binary.LittleEndian.Uint64(tail))
	}
	h.block[h.n] = binary.LittleEndian.Uint64(tail) // the padding's first bit and its last may share a word
	clear(h.block[h.n+1:])
	h.block[len(h.block)-1] ^= last
	h.state.Absorb(&h.block)
	var sum [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(sum[8*i:], h.state[i])
	}
	return sum
}
