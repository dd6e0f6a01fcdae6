package wire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

const blockTopic = "/leanconsensus/12345678/block/ssz_snappy"

// referenceID is the message id as the specification writes it.
func referenceID(domain byte, topic string, content []byte) []byte {
	h := sha256.New()
	h.Write([]byte{domain, 0, 0, 0})
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(topic))))
	h.Write([]byte(topic))
	h.Write(content)

	return h.Sum(nil)[:20]
}

// bomb is a message of three bytes for each 64 of its content: a first byte and
// copies of it.
func bomb(size int) []byte {
	b := binary.AppendUvarint(nil, uint64(size))
	b = append(b, 0, 7)
	for n := 1; n < size; {
		l := min(64, size-n)
		b = append(b, byte(l-1)<<2|2, 1, 0)
		n += l
	}

	return b
}

func TestMessageIDDomains(t *testing.T) {
	t.Parallel()
	payload := bytes.Repeat([]byte("vote"), 300)
	large := bomb(wire.MaxPayloadSize)
	tests := map[string]struct {
		data    []byte
		domain  byte
		content []byte
	}{
		"snappy":                    {wire.Compress(nil, payload), 1, payload},
		"empty snappy":              {[]byte{0}, 1, nil},
		"nothing":                   {nil, 0, nil},
		"not snappy":                {payload, 0, payload},
		"snappy cut short":          {wire.Compress(nil, payload)[:20], 0, wire.Compress(nil, payload)[:20]},
		"the largest payload":       {large, 1, bytes.Repeat([]byte{7}, wire.MaxPayloadSize)},
		"one byte above the limit":  {bomb(wire.MaxPayloadSize + 1), 0, bomb(wire.MaxPayloadSize + 1)},
		"a repeated offset of s2":   {s2Repeat, 0, s2Repeat},
		"four gigabytes announced":  {announce(1<<32-1, 15), 0, announce(1<<32-1, 15)},
		"more than 32 bits of it":   {announce(1<<32, 15), 0, announce(1<<32, 15)},
		"ten megabytes of nothing":  {announce(wire.MaxPayloadSize, 15), 0, announce(wire.MaxPayloadSize, 15)},
		"a length that never ends":  {bytes.Repeat([]byte{0xff}, 20), 0, bytes.Repeat([]byte{0xff}, 20)},
		"a length in a longer form": {[]byte{0x81, 0x80, 0x00, 0x00, 0x55}, 1, []byte{0x55}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, topic := range []string{"", blockTopic} {
				id := wire.MessageID(topic, tt.data)
				require.Equal(t, referenceID(tt.domain, topic, tt.content), id[:])
			}
		})
	}
}

// s2Repeat is a block whose second copy has the offset 0, which s2 reads as "the
// last offset again" and snappy refuses.
var s2Repeat = []byte{22, 3 << 2, 1, 2, 3, 4, 0x01 | 6<<2, 4, 0x01 | 4<<2, 0}

func TestTheExtensionOfS2IsRefused(t *testing.T) {
	t.Parallel()
	_, err := s2.Decode(nil, s2Repeat)
	require.NoError(t, err, "the test message must mean something to s2")
	_, err = wire.Decompress(s2Repeat, wire.MaxPayloadSize)
	requireReason(t, wire.ReasonMalformed, err)
}

// announce returns a message of size bytes that announces n.
func announce(n uint64, size int) []byte {
	b := binary.AppendUvarint(nil, n)

	return append(b, make([]byte, size-len(b))...)
}

func TestDecompressBounds(t *testing.T) {
	t.Parallel()
	payload := []byte("0123456789")
	message := wire.Compress(nil, payload)
	got, err := wire.Decompress(message, len(payload))
	require.NoError(t, err)
	require.Equal(t, payload, got)
	_, err = wire.Decompress(message, len(payload)-1)
	requireReason(t, wire.ReasonMalformed, err)
	_, err = wire.Decompress(message, -1)
	requireReason(t, wire.ReasonMalformed, err)
	_, err = wire.Decompress(append(message, 0), len(payload))
	requireReason(t, wire.ReasonMalformed, err)

	// The expansion that the check allows is really needed.
	got, err = wire.Decompress(bomb(1<<20), 1<<20)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{7}, 1<<20), got)
}

func TestCompressAppends(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 15, 65535, 65536, 65537, 1 << 20} {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(rng.IntN(3))
		}
		for _, room := range []int{0, 10, 2*n + 100} {
			dst := append(make([]byte, 0, 3+room), "abc"...)
			out := wire.Compress(dst, payload)
			require.Equal(t, "abc", string(out[:3]))
			got, err := wire.Decompress(out[3:], n)
			require.NoError(t, err)
			require.True(t, bytes.Equal(payload, got))
		}
		require.LessOrEqual(t, len(wire.Compress(nil, payload)), 32+n+n/6)
	}
}

// TestHostileMessagesDoNotAllocate sends a thousand small messages that announce
// huge payloads through the two functions that every message passes.
func TestHostileMessagesDoNotAllocate(t *testing.T) {
	// Not parallel: it measures the heap.
	messages := [][]byte{announce(1<<32-1, 20), announce(1<<32, 20), announce(wire.MaxPayloadSize, 20), announce(1<<20, 20), announce(441, 20)}
	n := allocated(func() {
		for range 1000 {
			for _, m := range messages {
				_, err := wire.Decompress(m, wire.MaxPayloadSize)
				if err == nil {
					t.Error("accepted")
				}
				wire.MessageID(blockTopic, m)
			}
		}
	})
	require.Less(t, n, uint64(5000*600), "errors only")
}

func TestMessageIDAllocatesNothing(t *testing.T) {
	// Not parallel: it counts allocations.
	if raceEnabled {
		t.Skip("not run: sync.Pool drops buffers at random under the race detector")
	}
	message := wire.Compress(nil, bytes.Repeat([]byte("vote"), 336))
	garbage := bytes.Repeat([]byte{0xff}, 20)
	for _, data := range [][]byte{message, garbage, s2Repeat, announce(1<<32-1, 20)} {
		require.Less(t, testing.AllocsPerRun(1000, func() { wire.MessageID(blockTopic, data) }), 0.5)
	}
}

func TestMessageIDFromManyGoroutines(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				payload := bytes.Repeat([]byte{byte(g), byte(i)}, 1+i)
				id := wire.MessageID(blockTopic, wire.Compress(nil, payload))
				if !bytes.Equal(referenceID(1, blockTopic, payload), id[:]) {
					t.Errorf("wrong id in goroutine %d", g)
				}
			}
		})
	}
	wg.Wait()
}

func TestTopics(t *testing.T) {
	t.Parallel()
	tests := map[string]wire.Topic{
		"/leanconsensus/12345678/block/ssz_snappy":                            {Kind: wire.TopicBlock},
		"/leanconsensus/12345678/aggregation/ssz_snappy":                      {Kind: wire.TopicAggregation},
		"/leanconsensus/12345678/attestation_0/ssz_snappy":                    {Kind: wire.TopicAttestation},
		"/leanconsensus/12345678/attestation_18446744073709551615/ssz_snappy": {Kind: wire.TopicAttestation, Subnet: 1<<64 - 1},
	}
	for name, topic := range tests {
		require.Equal(t, name, topic.Name(wire.DefaultNetwork))
		got, err := wire.ParseTopic(wire.DefaultNetwork, name)
		require.NoError(t, err)
		require.Equal(t, topic, got)
	}
	for _, name := range []string{
		"", "/", "block", "leanconsensus/12345678/block/ssz_snappy",
		"/leanconsensus/12345678/block/ssz_snappy/", "/leanconsensus/12345678/block/ssz", "/eth2/12345678/block/ssz_snappy",
		"/leanconsensus/0x12345678/block/ssz_snappy", "/leanconsensus/devnet0/block/ssz_snappy",
		"/leanconsensus/12345678/heartbeat/ssz_snappy", "/leanconsensus/12345678/attestation/ssz_snappy",
		"/leanconsensus/12345678/attestation_/ssz_snappy", "/leanconsensus/12345678/attestation_01/ssz_snappy",
		"/leanconsensus/12345678/attestation_+1/ssz_snappy", "/leanconsensus/12345678/attestation_-1/ssz_snappy",
		"/leanconsensus/12345678/attestation_18446744073709551616/ssz_snappy", "/leanconsensus/12345678/attestation_1 /ssz_snappy",
	} {
		_, err := wire.ParseTopic(wire.DefaultNetwork, name)
		require.Error(t, err, name)
	}
	require.Equal(t, "unknown", wire.TopicUnknown.String())
	require.Equal(t, "attestation", wire.TopicAttestation.String())
	require.Equal(t, "invalid", wire.TopicKind(9).String())
}

func TestSubnetsFollowTheCommitteeCount(t *testing.T) {
	t.Parallel()
	for committees, want := range map[uint64][]wire.SubnetID{
		1: {0, 0, 0, 0, 0, 0, 0, 0},
		3: {0, 1, 2, 0, 1, 2, 0, 1},
		4: {0, 1, 2, 3, 0, 1, 2, 3},
	} {
		var got []wire.SubnetID
		for v := range wire.ValidatorIndex(8) {
			got = append(got, wire.SubnetOf(v, committees))
		}
		require.Equal(t, want, got)
	}
}

func FuzzDecompress(f *testing.F) {
	f.Add(wire.Compress(nil, bytes.Repeat([]byte("abc"), 100)))
	f.Add(bomb(1000))
	f.Add(s2Repeat)
	f.Add(announce(1<<32-1, 20))
	f.Fuzz(func(t *testing.T, message []byte) {
		const limit = 1 << 16
		id := wire.MessageID(blockTopic, message)
		got, err := wire.Decompress(message, limit)
		if err != nil {
			requireReason(t, wire.ReasonMalformed, err)

			return
		}
		require.LessOrEqual(t, len(got), limit)
		require.Equal(t, referenceID(1, blockTopic, got), id[:])
		again, err := wire.Decompress(wire.Compress(nil, got), limit)
		require.NoError(t, err)
		require.True(t, slices.Equal(got, again))
	})
}

func FuzzParseTopic(f *testing.F) {
	f.Add("12345678", blockTopic)
	f.Add("x", "/leanconsensus/x/attestation_7/ssz_snappy")
	f.Fuzz(func(t *testing.T, network, name string) {
		topic, err := wire.ParseTopic(network, name)
		if err == nil {
			require.Equal(t, name, topic.Name(network))
		}
	})
}
