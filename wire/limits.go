package wire

// Limits of the protocol. None of them is ours to choose but MaxRegistryLimit.
const (
	// IntervalsPerSlot is the number of intervals in a slot
	// (leanSpec config.py, INTERVALS_PER_SLOT).
	IntervalsPerSlot = 5

	// DefaultRegistryLimit is Profile.RegistryLimit of every known network
	// (leanSpec config.py, VALIDATOR_REGISTRY_LIMIT).
	DefaultRegistryLimit = 4096

	// MaxRegistryLimit is the largest Profile.RegistryLimit that can be chosen
	// where the profile leaves a choice: the next power of two above the 10,000
	// validators of the largest measurements.
	MaxRegistryLimit = 16384

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

	// MaxRequestRoots is the largest number of roots in a BlocksByRoot request
	// and of blocks in a BlocksByRange request (leanSpec networking config).
	MaxRequestRoots = 1024

	// HistoricalRootsLimit is the list limit of roots in a state (leanSpec
	// config.py, HISTORICAL_ROOTS_LIMIT).
	HistoricalRootsLimit = 1 << 18
)
