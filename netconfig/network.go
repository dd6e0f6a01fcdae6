package netconfig

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"aggnode/wire"
)

// Names of the files of a network folder.
const (
	ConfigFile          = "config.yaml"
	ValidatorsFile      = "validators.yaml"
	AnnotatedFile       = "annotated_validators.yaml"
	NodesFile           = "nodes.yaml"
	ValidatorConfigFile = "validator-config.yaml"
	ProfileFile         = "aggnode.yaml"
	GenesisStateFile    = "genesis.ssz"
	KeyDir              = "hash-sig-keys"
)

// Defaults of a folder that does not say otherwise.
const (
	// DefaultSlotDuration is SECONDS_PER_SLOT (leanSpec config.py).
	DefaultSlotDuration = 4 * time.Second
	// DefaultProfile is the profile of a folder without aggnode.yaml.
	DefaultProfile = "devnet5"
	// MinSlotDuration is the shortest slot that is accepted: 200 ms an interval.
	// A guess, not measured; clients refuse anything below 4 s.
	MinSlotDuration = time.Second
)

// Network is what a network folder says. It is immutable.
type Network struct {
	// Dir is the folder.
	Dir string
	// GenesisTime is the start of slot 0 in seconds since 1970.
	GenesisTime uint64
	// SlotDuration is a multiple of five milliseconds.
	SlotDuration time.Duration
	// Committees is the number of attestation committees, at least 1.
	Committees uint64
	// Validators is the registry, in index order. ProposalKey is nil where
	// config.yaml is of the old form with one key for each validator.
	Validators []wire.Validator
	// Bootnodes are the entries of nodes.yaml in order, our own among them.
	Bootnodes []Node
	// NodeNames gives the names of validator-config.yaml by peer id.
	NodeNames map[string]string
	// Profile is the line of the protocol, checked against the keys.
	Profile *wire.Profile
	// Backend is the proof backend that aggnode.yaml names, or "".
	Backend string

	keyDir         string
	annotatedFile  string
	validatorsFile string
}

// Node is a node that can be dialled.
type Node struct {
	// Name is the node's name in validator-config.yaml, or "".
	Name   string
	PeerID string
	// QUIC is the UDP address of the node.
	QUIC netip.AddrPort
	// IsAggregator is what the node's record says.
	IsAggregator bool
	// IsSigned tells whether the entry is a record with a good signature. Nobody
	// on the network insists on it.
	IsSigned bool
}

// Multiaddr returns the address as libp2p writes it, with the peer id.
func (n Node) Multiaddr() string {
	family := "ip4"
	if n.QUIC.Addr().Is6() {
		family = "ip6"
	}

	return fmt.Sprintf("/%s/%s/udp/%d/quic-v1/p2p/%s", family, n.QUIC.Addr(), n.QUIC.Port(), n.PeerID)
}

// Overrides are settings that go before the folder; the zero value of a field
// leaves the folder's.
type Overrides struct {
	Profile      string
	Scheme       string
	Backend      string
	Committees   uint64
	SlotDuration time.Duration
	// Envelope is the block envelope, for profiles whose networks differ in it.
	Envelope wire.Envelope
	// Paths of files that are not in the folder.
	ConfigFile, NodesFile, ValidatorConfigFile, ValidatorsFile, KeyDir string
}

// Load reads a network folder. Only config.yaml must be there. The errors name
// the file and the entry; a profile that does not fit the keys and a key that is
// used twice are refused with both values.
func Load(dir string, o Overrides) (*Network, error) {
	cfg, err := loadConfig(pathOr(o.ConfigFile, dir, ConfigFile))
	if err != nil {
		return nil, err
	}
	nodes, err := loadValidatorConfig(pathOr(o.ValidatorConfigFile, dir, ValidatorConfigFile))
	if err != nil {
		return nil, err
	}
	line, err := loadProfileFile(pathOr("", dir, ProfileFile))
	if err != nil {
		return nil, err
	}
	n := &Network{
		Dir:            dir,
		GenesisTime:    cfg.genesisTime,
		SlotDuration:   firstNonZero(o.SlotDuration, cfg.slotDuration, DefaultSlotDuration),
		Committees:     firstNonZero(o.Committees, cfg.committees, nodes.committees, 1),
		Validators:     cfg.validators,
		NodeNames:      nodes.names,
		Backend:        firstNonZero(o.Backend, line.Backend),
		keyDir:         pathOr(o.KeyDir, dir, KeyDir),
		annotatedFile:  pathOr("", dir, AnnotatedFile),
		validatorsFile: pathOr(o.ValidatorsFile, dir, ValidatorsFile),
	}
	if err := checkSlotDuration(n.SlotDuration); err != nil {
		return nil, err
	}
	if n.Profile, err = line.profile(o); err != nil {
		return nil, err
	}
	if err := checkValidators(n.Profile, n.Validators); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.path, err)
	}
	if n.Bootnodes, err = loadNodes(pathOr(o.NodesFile, dir, NodesFile), nodes.names); err != nil {
		return nil, err
	}

	return n, nil
}

// firstNonZero returns the first value that is not zero, or zero.
func firstNonZero[T comparable](values ...T) (zero T) {
	for _, v := range values {
		if v != zero {
			return v
		}
	}

	return zero
}

// checkSlotDuration refuses slots that do not divide into intervals of whole
// milliseconds or that are too short.
func checkSlotDuration(d time.Duration) error {
	if d < MinSlotDuration || d%(wire.IntervalsPerSlot*time.Millisecond) != 0 {
		return fmt.Errorf("slot duration %s: must be a multiple of %d ms, at least %s", d, wire.IntervalsPerSlot, MinSlotDuration)
	}

	return nil
}

// checkValidators refuses a registry that the profile has no room for, keys that
// are not of the profile and keys that are there twice: a one-time key that signs
// for two would sign two messages a slot.
func checkValidators(p *wire.Profile, validators []wire.Validator) error {
	if n := len(validators); n == 0 || n > p.RegistryLimit {
		return fmt.Errorf("%d validators, must be 1 to %d", n, p.RegistryLimit)
	}
	type owner struct {
		index int
		role  Role
	}
	owners := make(map[string]owner, 2*len(validators))
	for i := range validators {
		v := &validators[i]
		for _, k := range []struct {
			role Role
			key  []byte
		}{{RoleAttester, v.AttestationKey}, {RoleProposer, v.ProposalKey}} {
			if k.key == nil && k.role == RoleProposer {
				continue
			}
			if len(k.key) != p.PublicKeySize {
				return fmt.Errorf("%s key of validator %d has %d bytes, profile %s (scheme %s) has keys of %d bytes",
					k.role, i, len(k.key), p.Name, p.Scheme, p.PublicKeySize)
			}
			if first, ok := owners[string(k.key)]; ok {
				return fmt.Errorf("validators %d (%s) and %d (%s) have the same key 0x%s",
					first.index, first.role, i, k.role, hex.EncodeToString(k.key))
			}
			owners[string(k.key)] = owner{i, k.role}
		}
	}

	return nil
}
