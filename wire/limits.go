package wire

// Limits of the protocol. None of them is ours to choose.
const (
	// IntervalsPerSlot is the number of intervals in a slot
	// (leanSpec config.py, INTERVALS_PER_SLOT).
	IntervalsPerSlot = 5

	// RegistryLimit is the largest number of validators, and so of bits in a
	// participants bitlist (leanSpec config.py, VALIDATOR_REGISTRY_LIMIT).
	RegistryLimit = 4096

	// MaxProofSize is the limit in bytes of a proof, 512 KiB (leanSpec
	// containers/aggregation.py, ByteList[524288]).
	MaxProofSize = 524288

	// MaxPayloadSize is the limit in bytes of an uncompressed gossip or
	// request/response payload, 10 MiB (leanSpec networking config,
	// MAX_PAYLOAD_SIZE).
	MaxPayloadSize = 10 << 20

	// MaxMessageSize is the limit in bytes of a compressed gossip message: the
	// worst case of raw snappy, 32 + n + n/6, for MaxPayloadSize, plus 1024 for
	// the envelope (leanSpec networking config, as in ethlambda and gean).
	MaxMessageSize = 32 + MaxPayloadSize + MaxPayloadSize/6 + 1024

	// MaxBodyAttestations is the list limit of attestations in a block body
	// (leanSpec containers/block.py). Profile.MaxAttestationsData is lower.
	MaxBodyAttestations = 4096

	// MaxRequestRoots is the largest number of roots in a BlocksByRoot request
	// and of blocks in a BlocksByRange request (leanSpec networking config).
	MaxRequestRoots = 1024

	// HistoricalRootsLimit is the list limit of roots in a state (leanSpec
	// config.py, HISTORICAL_ROOTS_LIMIT).
	HistoricalRootsLimit = 1 << 18
)
