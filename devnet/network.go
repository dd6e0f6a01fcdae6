package devnet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"aggnode/netconfig"
	"aggnode/netconfig/devkeys"
)

// observerName is the node without keys that measures.
const observerName = "observer_0"

// keyEpochsLog is the base-2 logarithm of the epochs that the devnet keys cover.
const keyEpochsLog = 16

// member is one node of the devnet.
type member struct {
	name       string
	ports      ports
	committee  int // the committee it aggregates, -1 for none
	isObserver bool
}

// members lays out the nodes: the first Committees of them are aggregators, the last one observes.
func (c *Config) members() ([]member, error) {
	free, err := freePorts(c.Nodes + 1)
	if err != nil {
		return nil, err
	}
	out := make([]member, c.Nodes+1)
	for i := range out {
		out[i] = member{name: "aggnode_" + strconv.Itoa(i), ports: free[i], committee: -1}
		if i < c.Committees {
			out[i].committee = i
		}
	}
	last := &out[c.Nodes]
	last.name, last.isObserver = observerName, true
	return out, nil
}

// writeNetwork writes the network folder with the keys that ship with the program.
func (c *Config) writeNetwork(dir string, l load, members []member, genesis time.Time) error {
	attestation, proposal, err := devkeys.Load(c.Scheme)
	if err != nil {
		return fmt.Errorf("load the devnet keys: %w", err)
	}
	spec := netconfig.GenesisSpec{
		GenesisTime:    uint64(genesis.Unix()),
		SlotDuration:   l.slotDuration,
		Committees:     uint64(c.Committees),
		ActiveEpochLog: keyEpochsLog,
		Profile:        c.Profile,
		Scheme:         c.Scheme,
		Backend:        c.Backend,
	}
	for v := range l.validators {
		spec.Validators = append(spec.Validators, netconfig.ValidatorSpec{
			AttestationKey: attestation[v].PublicKey[:], AttestationSecret: attestation[v].File,
			ProposalKey: proposal[v].PublicKey[:], ProposalSecret: proposal[v].File,
		})
	}
	for i, m := range members {
		node := netconfig.NodeSpec{
			Name: m.name, IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
			QUICPort: uint16(m.ports.gossip), MetricsPort: uint16(m.ports.metrics), APIPort: uint16(m.ports.api),
			PrivateKey: nodeKey(dir, i), IsAggregator: m.committee >= 0,
		}
		if !m.isObserver {
			node.Count = l.validators / c.Nodes
			if i < l.validators%c.Nodes {
				node.Count++
			}
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	if err := netconfig.Write(dir, spec); err != nil {
		return fmt.Errorf("write the network folder: %w", err)
	}
	return nil
}

// nodeKey derives a network identity from the folder's name and the node's number: two devnets never share one.
func nodeKey(dir string, i int) [32]byte {
	return sha256.Sum256(binary.LittleEndian.AppendUint32([]byte("aggnode devnet node key"+dir), uint32(i)))
}

// runArgs are the public flags that start a member.
func (c *Config) runArgs(genesisDir, dataDir string, m member) []string {
	args := []string{
		"run",
		"--custom-network-config-dir", genesisDir,
		"--node-id", m.name,
		"--node-key", filepath.Join(genesisDir, m.name+".key"),
		"--data-dir", dataDir,
		"--listen-address", "127.0.0.1",
		"--gossipsub-port", strconv.Itoa(m.ports.gossip),
		"--api-port", strconv.Itoa(m.ports.api),
		"--metrics-port", strconv.Itoa(m.ports.metrics),
		"--log-format", "json",
		"--log-level", c.LogLevel,
	}
	if m.committee >= 0 {
		args = append(args, "--is-aggregator", "--aggregate-subnet-ids", strconv.Itoa(m.committee), "--prover-class", c.ProverClass)
	}
	if c.ProverDir != "" && !c.isBare(m) {
		args = append(args, "--prover-dir", c.ProverDir)
	}
	if c.Verifier != "" {
		args = append(args, "--aggregate-verifier", c.Verifier)
	}
	if c.OTLP != "" {
		args = append(args, "--otlp", c.OTLP)
	}
	return append(args, c.ExtraArgs...)
}

// isBare reports whether the node runs without a prover and without a child that checks: validators and the observer, where
// proofs are checked natively.
func (c *Config) isBare(m member) bool {
	return m.committee < 0 && c.Backend == "lean-pq" && (c.Verifier == "" || c.Verifier == "native")
}

// environ is the environment of a member. In that of a bare one there is no Python to be found and no prover installed: that
// it verifies shows that it needs neither.
func (c *Config) environ(dataDir string, m member) []string {
	if !c.isBare(m) {
		return nil
	}
	return append(os.Environ(), "PATH=", "XDG_DATA_HOME="+dataDir) // the last of a name counts
}
