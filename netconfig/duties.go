package netconfig

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"aggnode/wire"
)

// Role is which of the two keys of a validator is meant.
type Role uint8

// The roles, named as in key files.
const (
	RoleUnknown Role = iota
	RoleAttester
	RoleProposer
)

// String returns the name of the role.
func (r Role) String() string {
	switch r {
	case RoleUnknown:
		return "unknown"
	case RoleAttester:
		return "attester"
	case RoleProposer:
		return "proposer"
	}

	return "invalid"
}

// SecretKeyFile returns the name of the file of a secret key in the key folder.
// The name is the one that clients look for; what is inside is the scheme's own
// form.
func SecretKeyFile(v wire.ValidatorIndex, r Role) string {
	return fmt.Sprintf("validator_%d_%s_key_sk.ssz", v, r)
}

// PublicKeyFile returns the name of the file of a public key in the key folder.
func PublicKeyFile(v wire.ValidatorIndex, r Role) string {
	return fmt.Sprintf("validator_%d_%s_key_pk.ssz", v, r)
}

// ValidatorDuty is a validator that a node runs, with the paths of its secret
// keys. A path is "" where the folder names no key for the role.
type ValidatorDuty struct {
	Index                               wire.ValidatorIndex
	AttestationKeyFile, ProposalKeyFile string
}

// annotatedYAML is one entry of annotated_validators.yaml.
type annotatedYAML struct {
	Index     uint64   `yaml:"index"`
	PublicKey hexBytes `yaml:"pubkey_hex"`
	File      string   `yaml:"privkey_file"`
}

// Duties returns what the node runs, in index order. annotated_validators.yaml
// goes before validators.yaml, whose indices have files of the usual names. A
// node that neither names has no keys, which is no error. The key files are not
// opened.
func (n *Network) Duties(nodeID string) ([]ValidatorDuty, error) {
	var annotated map[string][]annotatedYAML
	ok, err := readYAML(n.annotatedFile, &annotated, false)
	if err != nil {
		return nil, err
	}
	if ok {
		duties, err := n.annotatedDuties(annotated[nodeID])
		if err != nil {
			return nil, fmt.Errorf("%s: node %q: %w", n.annotatedFile, nodeID, err)
		}

		return duties, nil
	}
	indices, err := loadAssignments(n.validatorsFile, nodeID)
	if err != nil {
		return nil, err
	}
	duties := make([]ValidatorDuty, 0, len(indices))
	for _, i := range indices {
		if i >= uint64(len(n.Validators)) {
			return nil, fmt.Errorf("%s: node %q: index %d, config.yaml has %d validators", n.validatorsFile, nodeID, i, len(n.Validators))
		}
		v := wire.ValidatorIndex(i)
		duties = append(duties, ValidatorDuty{
			Index:              v,
			AttestationKeyFile: filepath.Join(n.keyDir, SecretKeyFile(v, RoleAttester)),
			ProposalKeyFile:    filepath.Join(n.keyDir, SecretKeyFile(v, RoleProposer)),
		})
	}

	return duties, nil
}

// annotatedDuties joins the entries of a node, two for each validator.
func (n *Network) annotatedDuties(entries []annotatedYAML) ([]ValidatorDuty, error) {
	var duties []ValidatorDuty
	for _, e := range entries {
		if e.Index >= uint64(len(n.Validators)) {
			return nil, fmt.Errorf("index %d, config.yaml has %d validators", e.Index, len(n.Validators))
		}
		if !filepath.IsLocal(e.File) {
			return nil, fmt.Errorf("index %d: privkey_file %q is not a name inside the key folder", e.Index, e.File)
		}
		role := roleOf(e.File)
		if role == RoleUnknown {
			return nil, fmt.Errorf("index %d: privkey_file %q must name one of attester and proposer", e.Index, e.File)
		}
		v := &n.Validators[e.Index]
		want := v.AttestationKey
		if role == RoleProposer {
			want = v.ProposalKey
		}
		if len(e.PublicKey) > 0 && want != nil && string(e.PublicKey) != string(want) {
			return nil, fmt.Errorf("index %d: %s key 0x%s, config.yaml has 0x%s", e.Index, role, hex.EncodeToString(e.PublicKey), hex.EncodeToString(want))
		}
		at := slices.IndexFunc(duties, func(d ValidatorDuty) bool { return d.Index == v.Index })
		if at < 0 {
			at = len(duties)
			duties = append(duties, ValidatorDuty{Index: v.Index})
		}
		file := &duties[at].AttestationKeyFile
		if role == RoleProposer {
			file = &duties[at].ProposalKeyFile
		}
		if *file != "" {
			return nil, fmt.Errorf("index %d: two %s keys", e.Index, role)
		}
		*file = filepath.Join(n.keyDir, e.File)
	}
	slices.SortFunc(duties, func(a, b ValidatorDuty) int { return int(a.Index) - int(b.Index) }) //nolint:gosec // below 4096

	return duties, nil
}

// roleOf tells the role from the name of a key file, which must say exactly one.
func roleOf(file string) Role {
	name := filepath.Base(file)
	isAttester, isProposer := strings.Contains(name, "attester"), strings.Contains(name, "proposer")
	switch {
	case isAttester && !isProposer:
		return RoleAttester
	case isProposer && !isAttester:
		return RoleProposer
	}

	return RoleUnknown
}

// loadAssignments reads the indices of a node from validators.yaml, which may
// have them below a key "validators". A file that is not there assigns nothing.
func loadAssignments(path, nodeID string) ([]uint64, error) {
	var y map[string]yaml.Node
	if _, err := readYAML(path, &y, false); err != nil {
		return nil, err
	}
	if inner, ok := y["validators"]; ok && inner.Kind == yaml.MappingNode {
		y = nil
		if err := inner.Decode(&y); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	entry, ok := y[nodeID]
	if !ok {
		return nil, nil
	}
	var indices []uint64
	if err := entry.Decode(&indices); err != nil {
		return nil, fmt.Errorf("%s: node %q: %w", path, nodeID, err)
	}
	slices.Sort(indices)
	for i := 1; i < len(indices); i++ {
		if indices[i] == indices[i-1] {
			return nil, fmt.Errorf("%s: node %q: index %d twice", path, nodeID, indices[i])
		}
	}

	return indices, nil
}
