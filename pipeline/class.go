package pipeline

import "aggnode/wire"

// Class is a queue of its own with its own bound, order and deadline
// (ARCHITECTURE.md, Queues). It is the value of the "class" metric label.
type Class uint8

// The classes.
const (
	ClassUnknown     Class = iota // no class: not an item
	ClassBlock                    // inbound blocks
	ClassAttestation              // inbound votes
	ClassAggregate                // inbound aggregates
	ClassLocal                    // our own votes, aggregates and blocks, and self-checks

	classEnd // one past the last class
)

// String returns the label of the class.
func (c Class) String() string {
	switch c {
	case ClassUnknown:
		return "unknown"
	case ClassBlock:
		return "block"
	case ClassAttestation:
		return "attestation"
	case ClassAggregate:
		return "aggregate"
	case ClassLocal:
		return "local"
	}

	return "invalid"
}

// Classes returns all classes but ClassUnknown.
func Classes() []Class { return []Class{ClassBlock, ClassAttestation, ClassAggregate, ClassLocal} }

// classOf returns the class of what a topic carries.
func classOf(k wire.TopicKind) Class {
	switch k {
	case wire.TopicUnknown:
		return ClassUnknown
	case wire.TopicBlock:
		return ClassBlock
	case wire.TopicAggregation:
		return ClassAggregate
	case wire.TopicAttestation:
		return ClassAttestation
	}

	return ClassUnknown
}

// kind is what an item carries; an item of ClassLocal carries any of them.
type kind uint8

const (
	kindUnknown kind = iota
	kindBlock
	kindAttestation
	kindAggregate
)

// String returns the name of the kind for logs and tests.
func (k kind) String() string {
	switch k {
	case kindUnknown:
		return "unknown"
	case kindBlock:
		return "block"
	case kindAttestation:
		return "attestation"
	case kindAggregate:
		return "aggregate"
	}

	return "invalid"
}
