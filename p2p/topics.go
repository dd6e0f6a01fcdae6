package p2p

import (
	"slices"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"

	"aggnode/wire"
)

// topicTable is every topic of the network by name. Immutable.
type topicTable struct {
	all []topicEntry
	// byName finds an entry by its full topic name.
	byName map[string]topicEntry
}

// topicEntry is one topic.
type topicEntry struct {
	topic wire.Topic
	name  string
	// isSubscribed: we take part in the mesh. Other topics are joined for
	// publishing alone (fanout).
	isSubscribed bool
}

// newTopicTable lists the topics of a network: block, aggregation, and one
// attestation topic a committee, of which those in subnets are subscribed.
func newTopicTable(network string, committees uint64, subnets []wire.SubnetID) *topicTable {
	t := &topicTable{byName: make(map[string]topicEntry)}
	add := func(topic wire.Topic, subscribe bool) {
		e := topicEntry{topic: topic, name: topic.Name(network), isSubscribed: subscribe}
		t.all = append(t.all, e)
		t.byName[e.name] = e
	}
	add(wire.Topic{Kind: wire.TopicBlock}, true)
	add(wire.Topic{Kind: wire.TopicAggregation}, true)
	for s := range committees {
		id := wire.SubnetID(s)
		add(wire.Topic{Kind: wire.TopicAttestation, Subnet: id}, slices.Contains(subnets, id))
	}

	return t
}

// names returns the names of all topics.
func (t *topicTable) names() []string {
	names := make([]string, len(t.all))
	for i, e := range t.all {
		names[i] = e.name
	}

	return names
}

// attestationTopics returns the number of subscribed attestation topics.
func (t *topicTable) attestationTopics() int {
	n := 0
	for _, e := range t.all {
		if e.isSubscribed && e.topic.Kind == wire.TopicAttestation {
			n++
		}
	}

	return n
}

// maxPayload returns the largest decompressed payload of a kind in bytes, so
// that a message can not make us allocate beyond what its topic could carry.
func maxPayload(kind wire.TopicKind, profile *wire.Profile) int {
	switch kind {
	case wire.TopicUnknown:
		return 0
	case wire.TopicBlock:
		return wire.MaxPayloadSize
	case wire.TopicAggregation:
		return maxAggregateSize(profile)
	case wire.TopicAttestation:
		return maxAttestationSize
	}

	return 0
}

// maxAttestationSize is above the largest SignedAttestation of any known scheme
// (2,672 bytes, leanSig), so that a vote of another scheme is still decoded far
// enough to be called scheme_mismatch.
const maxAttestationSize = 4096

// maxAggregateSize is the limit of SignedAggregatedAttestation: data, three
// offsets, a bitlist of the registry's limit with its delimiter, and the proof
// (protocol 2.2).
func maxAggregateSize(profile *wire.Profile) int {
	return wire.AttestationDataSize + 3*4 + profile.RegistryLimit/8 + 1 + wire.MaxProofSize
}

// messageID is the id function of pubsub. The library calls it on its event
// loop, once a copy that arrives.
func messageID(m *pb.Message) string {
	id := wire.MessageID(m.GetTopic(), m.GetData())

	return string(id[:])
}
