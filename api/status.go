package api

// Status is the body of /aggnode/v1/status: one snapshot of the node. Roots and keys are 0x hex.
type Status struct {
	Version  string   `json:"version"`
	Node     string   `json:"node"` // name in the network folder
	PeerID   string   `json:"peer_id"`
	Addrs    []string `json:"addrs"` // multiaddrs that it listens on
	Network  string   `json:"network"`
	Profile  string   `json:"profile"`
	Scheme   string   `json:"scheme"`
	UptimeMS int64    `json:"uptime_ms"`

	GenesisTime   int64  `json:"genesis_time"` // unix seconds
	SlotMS        int64  `json:"slot_ms"`      // length of a slot
	BeforeGenesis bool   `json:"before_genesis"`
	Slot          uint64 `json:"slot"`
	Interval      int    `json:"interval"`

	Head      Checkpoint `json:"head"`
	Finalized Checkpoint `json:"finalized"`

	Validators    int      `json:"validators"`     // of the registry
	OwnValidators []uint64 `json:"own_validators"` // indices whose keys this node holds
	Committees    uint64   `json:"committees"`
	Subnets       []uint64 `json:"subnets"` // attestation topics joined
	IsAggregator  bool     `json:"is_aggregator"`

	Peers    []Peer   `json:"peers"`
	Queues   []Queue  `json:"queues"`
	Caches   []Cache  `json:"caches"`
	Budget   Budget   `json:"budget"`
	Prover   *Backend `json:"prover"`   // nil without one
	Verifier *Backend `json:"verifier"` // nil without one

	Checks []Check `json:"checks"`
}

// fill makes empty lists of missing ones, so that readers never meet a null there.
func (s *Status) fill() {
	fillList(&s.Addrs)
	fillList(&s.OwnValidators)
	fillList(&s.Subnets)
	fillList(&s.Peers)
	fillList(&s.Queues)
	fillList(&s.Caches)
	fillList(&s.Checks)
}

func fillList[T any](l *[]T) {
	if *l == nil {
		*l = []T{}
	}
}

// Checkpoint is a block root and its slot.
type Checkpoint struct {
	Root string `json:"root"`
	Slot uint64 `json:"slot"`
}

// Peer is one connected peer.
type Peer struct {
	ID          string `json:"peer_id"`
	Name        string `json:"name,omitempty"` // from the network folder
	Address     string `json:"address"`
	Direction   string `json:"direction"` // "inbound" or "outbound"
	ConnectedMS int64  `json:"connected_ms"`
}

// Queue is one class of the pipeline.
type Queue struct {
	Class    string `json:"class"`
	Waiting  int    `json:"waiting"`
	Running  int    `json:"running"`
	Parked   int    `json:"parked"`
	Capacity int    `json:"capacity"`
	OldestMS int64  `json:"oldest_ms"`
}

// Cache is one cache.
type Cache struct {
	Name     string `json:"name"`
	Entries  int    `json:"entries"`
	Capacity int    `json:"capacity"`
}

// Budget is how the prover is placed on the machine.
type Budget struct {
	Tier  string  `json:"tier"`  // "T0", "T1" or "T2"
	Cores float64 `json:"cores"` // that the prover may use
}

// Backend is a proving or checking backend.
type Backend struct {
	Name      string `json:"name"`
	Revision  string `json:"revision"`
	Scheme    string `json:"scheme"`
	Ready     bool   `json:"ready"`
	PID       int    `json:"pid,omitempty"`
	Restarts  uint64 `json:"restarts"`
	Running   int    `json:"running"`
	OldestMS  int64  `json:"oldest_ms"` // age of the oldest call in progress
	LastError string `json:"last_error,omitempty"`
}
