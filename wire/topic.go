package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// TopicKind is what a gossip topic carries.
type TopicKind uint8

// The kinds of topics.
const (
	TopicUnknown     TopicKind = iota // names no topic
	TopicBlock                        // SignedBlock
	TopicAggregation                  // SignedAggregatedAttestation
	TopicAttestation                  // SignedAttestation of one subnet
)

// Parts of topic names (leanSpec networking/gossipsub/topic.py).
const (
	topicPrefix      = "leanconsensus"
	topicEncoding    = "ssz_snappy"
	attestationTopic = "attestation_"
)

// DefaultNetwork is the network part of topic names that all clients use
// (leanSpec GOSSIP_DIGEST). It is literal text, not a number.
const DefaultNetwork = "12345678"

// String returns the name of the kind as in topic names.
func (k TopicKind) String() string {
	switch k {
	case TopicUnknown:
		return "unknown"
	case TopicBlock:
		return "block"
	case TopicAggregation:
		return "aggregation"
	case TopicAttestation:
		return "attestation"
	}

	return "invalid"
}

// Topic is a gossip topic without the network it belongs to.
type Topic struct {
	Kind TopicKind
	// Subnet is used by TopicAttestation alone.
	Subnet SubnetID
}

// Name returns the topic name on the network, for example
// /leanconsensus/12345678/attestation_3/ssz_snappy.
func (t Topic) Name(network string) string {
	name := t.Kind.String()
	if t.Kind == TopicAttestation {
		name = attestationTopic + strconv.FormatUint(uint64(t.Subnet), 10)
	}

	return "/" + topicPrefix + "/" + network + "/" + name + "/" + topicEncoding
}

// ParseTopic reads a topic name of the network. It accepts exactly the names
// that Name returns.
func ParseTopic(network, name string) (Topic, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 5 || parts[0] != "" || parts[1] != topicPrefix || parts[4] != topicEncoding {
		return Topic{}, fmt.Errorf("topic %q is not /%s/NETWORK/NAME/%s", name, topicPrefix, topicEncoding)
	}
	if parts[2] != network {
		return Topic{}, fmt.Errorf("topic %q is of network %q, not %q", name, parts[2], network)
	}
	switch parts[3] {
	case "block":
		return Topic{Kind: TopicBlock}, nil
	case "aggregation":
		return Topic{Kind: TopicAggregation}, nil
	}
	digits, ok := strings.CutPrefix(parts[3], attestationTopic)
	if ok {
		subnet, err := strconv.ParseUint(digits, 10, 64)
		if err == nil && strconv.FormatUint(subnet, 10) == digits {
			return Topic{Kind: TopicAttestation, Subnet: SubnetID(subnet)}, nil
		}
	}

	return Topic{}, fmt.Errorf("topic %q carries nothing known", name)
}

// SubnetOf returns the subnet of a validator among committees, which must be
// positive (leanSpec containers/identifiers.py).
func SubnetOf(v ValidatorIndex, committees uint64) SubnetID {
	return SubnetID(uint64(v) % committees)
}
