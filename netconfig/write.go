package netconfig

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"aggnode/wire"
)

// GenesisSpec is a network to write.
type GenesisSpec struct {
	// GenesisTime is the start of slot 0 in seconds since 1970.
	GenesisTime uint64
	// SlotDuration is a multiple of five milliseconds; 0 means
	// DefaultSlotDuration, which is the one that is not written down, because
	// some clients refuse keys that they do not know.
	SlotDuration time.Duration
	// Committees is the number of attestation committees; 0 means 1.
	Committees uint64
	// ActiveEpochLog is the base-2 logarithm of the lifetime of the keys in
	// epochs.
	ActiveEpochLog uint8
	// Profile, Scheme and Backend go to aggnode.yaml. An empty scheme is the
	// profile's first one, an empty backend is left open.
	Profile, Scheme, Backend string
	// RegistryLimit goes there too where it is not 0, which means that of the
	// profile. Only the profile local allows another.
	RegistryLimit int
	Nodes         []NodeSpec
	// Validators are the registry in index order. They are given to the nodes
	// round robin, as far as each node's Count goes; the counts must add up.
	Validators []ValidatorSpec
	// Overwrite allows a folder that is not empty. Files of the new network
	// replace those of the same name; others stay.
	Overwrite bool
}

// NodeSpec is a node of the network.
type NodeSpec struct {
	// Name is letters, digits, '_', '-' and '.', a letter first.
	Name string
	IP   netip.Addr
	// QUICPort is the UDP port of the node; the others are told to whoever
	// starts it, and 0 leaves them out.
	QUICPort, MetricsPort, APIPort uint16
	// PrivateKey is the secp256k1 key of the peer id.
	PrivateKey   [32]byte
	IsAggregator bool
	// Count is the number of validators that the node runs, possibly 0.
	Count int
}

// ValidatorSpec is the key material of a validator. Public keys have the length
// of the profile; secret keys are the content of their files. A secret key may
// be nil: then there is no file and the node does not sign in that role.
type ValidatorSpec struct {
	AttestationKey, ProposalKey       []byte
	AttestationSecret, ProposalSecret []byte
}

// File modes. Keys are for their owner alone.
const (
	fileMode   = 0o644
	secretMode = 0o600
	dirMode    = 0o755
	keyDirMode = 0o700
)

// nodeNames is what a node may be called: a name becomes a file name, a YAML key
// and a metric label of other tools.
var nodeNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// folderFile is one file of the folder.
type folderFile struct {
	name string // relative
	mode fs.FileMode
	data []byte
}

// Write writes the folder of a network: everything that Load and Duties read,
// the key of each node (<name>.key) and genesis.ssz. The same spec gives the
// same bytes. Nothing is written when the spec is not consistent, or when the
// folder has something in it and the spec does not allow that.
func Write(dir string, spec GenesisSpec) error {
	files, err := spec.files()
	if err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	if err := checkTarget(dir, spec.Overwrite); err != nil {
		return err
	}
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{dir, dirMode}, {filepath.Join(dir, KeyDir), keyDirMode}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("write network folder: %w", err)
		}
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return fmt.Errorf("write network folder: %w", err)
		}
	}

	return nil
}

// checkTarget refuses a path that is no folder, and a folder with content unless
// overwrite.
func checkTarget(dir string, overwrite bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write network folder: %w", err)
	case len(entries) > 0 && !overwrite:
		return fmt.Errorf("write network folder: %s is not empty", dir)
	}

	return nil
}

// writeFile replaces a file as a whole: a reader sees the old one or the new
// one, and a secret is never readable under the mode of an old file.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}

	return nil
}

// files returns all files of the folder in a fixed order.
func (s *GenesisSpec) files() ([]folderFile, error) {
	profile, validators, err := s.check()
	if err != nil {
		return nil, err
	}
	assigned := s.assign()
	state, err := profile.EncodeState(profile.GenesisState(s.GenesisTime, validators))
	if err != nil {
		return nil, err
	}
	files := []folderFile{{GenesisStateFile, fileMode, state}}
	for _, doc := range []struct {
		name    string
		content any
	}{
		{ConfigFile, s.configDoc()},
		{ValidatorConfigFile, s.validatorConfigDoc()},
		{ValidatorsFile, s.validatorsDoc(assigned)},
		{AnnotatedFile, s.annotatedDoc(assigned)},
		{ProfileFile, s.profileDoc(profile)},
	} {
		data, err := marshalYAML(doc.content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.name, err)
		}
		mode := fs.FileMode(fileMode)
		if doc.name == ValidatorConfigFile {
			mode = secretMode // has the nodes' keys
		}
		files = append(files, folderFile{doc.name, mode, data})
	}
	nodes, err := s.nodesDoc()
	if err != nil {
		return nil, err
	}
	files = append(files, folderFile{NodesFile, fileMode, nodes})
	for _, n := range s.Nodes {
		files = append(files, folderFile{n.Name + ".key", secretMode, []byte(hex.EncodeToString(n.PrivateKey[:]) + "\n")})
	}

	return append(files, s.keyFiles()...), nil
}

// check refuses a spec that does not make a network, and returns its profile and
// its registry.
func (s *GenesisSpec) check() (*wire.Profile, []wire.Validator, error) {
	profile, err := wire.LookupProfile(s.Profile, s.Scheme)
	if err != nil {
		return nil, nil, err
	}
	if s.RegistryLimit != 0 {
		if profile, err = profile.WithRegistryLimit(s.RegistryLimit); err != nil {
			return nil, nil, err
		}
	}
	if err := checkSlotDuration(s.slotDuration()); err != nil {
		return nil, nil, err
	}
	validators := make([]wire.Validator, len(s.Validators))
	for i, v := range s.Validators {
		if v.ProposalKey == nil {
			return nil, nil, fmt.Errorf("validator %d has no proposal key", i)
		}
		validators[i] = wire.Validator{AttestationKey: v.AttestationKey, ProposalKey: v.ProposalKey, Index: wire.ValidatorIndex(i)} //nolint:gosec // not negative
	}
	if err := checkValidators(profile, validators); err != nil {
		return nil, nil, err
	}

	return profile, validators, s.checkNodes()
}

// checkNodes refuses nodes that could not be told apart or found.
func (s *GenesisSpec) checkNodes() error {
	if len(s.Nodes) == 0 {
		return errors.New("no nodes")
	}
	total := 0
	names, keys, addrs := map[string]bool{}, map[[32]byte]string{}, map[netip.AddrPort]string{}
	for _, n := range s.Nodes {
		addr := netip.AddrPortFrom(n.IP, n.QUICPort)
		switch {
		case !nodeNames.MatchString(n.Name):
			return fmt.Errorf("node name %q: must be a letter, then letters, digits, '_', '-' and '.'", n.Name)
		case names[n.Name]:
			return fmt.Errorf("two nodes are called %q", n.Name)
		case keys[n.PrivateKey] != "":
			return fmt.Errorf("nodes %q and %q have the same private key", keys[n.PrivateKey], n.Name)
		case addrs[addr] != "":
			return fmt.Errorf("nodes %q and %q have the same address %s", addrs[addr], n.Name, addr)
		case n.Count < 0:
			return fmt.Errorf("node %q has %d validators", n.Name, n.Count)
		}
		names[n.Name], keys[n.PrivateKey], addrs[addr] = true, n.Name, n.Name
		total += n.Count
	}
	if total != len(s.Validators) {
		return fmt.Errorf("the nodes run %d validators, there are %d", total, len(s.Validators))
	}

	return nil
}

func (s *GenesisSpec) slotDuration() time.Duration {
	return firstNonZero(s.SlotDuration, DefaultSlotDuration)
}

// assign gives the validators to the nodes round robin: one each in turn, past
// nodes that have theirs.
func (s *GenesisSpec) assign() [][]int {
	assigned := make([][]int, len(s.Nodes))
	for next := 0; next < len(s.Validators); {
		for i, n := range s.Nodes {
			if len(assigned[i]) < n.Count && next < len(s.Validators) {
				assigned[i] = append(assigned[i], next)
				next++
			}
		}
	}

	return assigned
}

// keyFiles returns the files of the keys of all validators.
func (s *GenesisSpec) keyFiles() []folderFile {
	var files []folderFile
	for i, v := range s.Validators {
		index := wire.ValidatorIndex(i) //nolint:gosec // not negative
		for _, k := range []struct {
			role           Role
			public, secret []byte
		}{{RoleAttester, v.AttestationKey, v.AttestationSecret}, {RoleProposer, v.ProposalKey, v.ProposalSecret}} {
			files = append(files, folderFile{filepath.Join(KeyDir, PublicKeyFile(index, k.role)), fileMode, k.public})
			if k.secret != nil {
				files = append(files, folderFile{filepath.Join(KeyDir, SecretKeyFile(index, k.role)), secretMode, k.secret})
			}
		}
	}

	return files
}

// marshalYAML returns v as YAML with an indentation of two.
func marshalYAML(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := yaml.NewEncoder(&buf)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return nil, err
	}

	return buf.Bytes(), e.Close()
}
