package wire_test

import (
	"testing"

	"aggnode/wire"
)

// BenchmarkMessageID measures the id of a vote and of an aggregate with a proof
// that does not compress, of the size seen on devnets.
func BenchmarkMessageID(b *testing.B) {
	p := profileNamed(b, "devnet5", "")
	vote := must(p.EncodeAttestation(&wire.SignedAttestation{Data: sampleData(), Signature: noise(p.SignatureSize)}))
	aggregate := must(p.EncodeAggregate(&wire.SignedAggregate{Data: sampleData(), Participants: participants(b, 1023), Proof: noise(200 << 10)}))
	for name, payload := range map[string][]byte{"vote": vote, "aggregate": aggregate} {
		b.Run(name, func(b *testing.B) {
			message := wire.Compress(nil, payload)
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			for b.Loop() {
				wire.MessageID(blockTopic, message)
			}
		})
	}
}

func BenchmarkDecodeAttestation(b *testing.B) {
	p := profileNamed(b, "devnet5", "")
	payload := must(p.EncodeAttestation(&wire.SignedAttestation{Data: sampleData(), Signature: noise(p.SignatureSize)}))
	b.ReportAllocs()
	for b.Loop() {
		a, err := p.DecodeAttestation(payload)
		if err != nil {
			b.Fatal(err)
		}
		_ = a.Data.HashTreeRoot()
	}
}

func BenchmarkDecodeAggregate(b *testing.B) {
	p := profileNamed(b, "devnet5", "")
	payload := must(p.EncodeAggregate(&wire.SignedAggregate{Data: sampleData(), Participants: participants(b, 0, 1023), Proof: noise(200 << 10)}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.DecodeAggregate(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParticipantsUnion(b *testing.B) {
	var even, odd []wire.ValidatorIndex
	for v := range wire.ValidatorIndex(1024) {
		if v%2 == 0 {
			even = append(even, v)
		} else {
			odd = append(odd, v)
		}
	}
	p, q := participants(b, even...), participants(b, odd...)
	b.ReportAllocs()
	for b.Loop() {
		if p.Union(q).CountNotIn(p) != 512 {
			b.Fatal("wrong union")
		}
	}
}
