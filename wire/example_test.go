package wire_test

import (
	"fmt"

	"aggnode/wire"
)

// A vote travels as raw snappy on the topic of its validator's subnet.
func Example() {
	profile, err := wire.LookupProfile("devnet5", "")
	if err != nil {
		panic(err)
	}
	vote := &wire.SignedAttestation{
		ValidatorIndex: 11,
		Data:           wire.AttestationData{Slot: 7},
		Signature:      make([]byte, profile.SignatureSize),
	}
	payload, err := profile.EncodeAttestation(vote)
	if err != nil {
		panic(err)
	}
	topic := wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetOf(vote.ValidatorIndex, 4)}
	message := wire.Compress(nil, payload)
	id := wire.MessageID(topic.Name(wire.DefaultNetwork), message)

	received, err := wire.Decompress(message, wire.MaxPayloadSize)
	if err != nil {
		panic(err)
	}
	again, err := profile.DecodeAttestation(received)
	if err != nil {
		panic(err)
	}
	fmt.Println(topic.Name(wire.DefaultNetwork))
	fmt.Println(len(payload), "bytes, validator", again.ValidatorIndex, "votes for", again.Data.HashTreeRoot().Short())
	fmt.Printf("id %x\n", id[:4])
	// Output:
	// /leanconsensus/12345678/attestation_3/ssz_snappy
	// 1344 bytes, validator 11 votes for 0ecce962
	// id 4e7512bd
}

// Bitlists are accepted in any length and written in the shortest.
func ExampleParticipants() {
	p, err := wire.NewParticipants([]wire.ValidatorIndex{8, 0, 3})
	if err != nil {
		panic(err)
	}
	q, err := wire.NewParticipants([]wire.ValidatorIndex{3, 4})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%x %v\n", p.SSZ(), p.Indices())
	fmt.Println(p.Union(q).Indices(), p.Minus(q).Indices(), q.CountNotIn(p))
	// Output:
	// 0903 [0 3 8]
	// [0 3 4 8] [0 8] 1
}
