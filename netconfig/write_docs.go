package netconfig

import (
	"encoding/hex"
	"fmt"

	"aggnode/wire"
)

// The files that are written, in the layout of lean-quickstart. Key texts are
// quoted where YAML would take them for numbers; readers accept both.
type (
	configDoc struct {
		GenesisTime    uint64             `yaml:"GENESIS_TIME"`
		MillisPerSlot  int64              `yaml:"MILLISECONDS_PER_SLOT,omitempty"`
		Committees     uint64             `yaml:"ATTESTATION_COMMITTEE_COUNT"`
		ActiveEpochLog uint8              `yaml:"ACTIVE_EPOCH"`
		ValidatorCount int                `yaml:"VALIDATOR_COUNT"`
		Validators     []validatorKeysDoc `yaml:"GENESIS_VALIDATORS"`
	}
	validatorKeysDoc struct {
		Attestation string `yaml:"attestation_pubkey"`
		Proposal    string `yaml:"proposal_pubkey"`
	}
	validatorConfigDoc struct {
		Shuffle        string      `yaml:"shuffle"`
		DeploymentMode string      `yaml:"deployment_mode"`
		Config         keyTypeDoc  `yaml:"config"`
		Validators     []nodeEntry `yaml:"validators"`
	}
	keyTypeDoc struct {
		ActiveEpochLog uint8  `yaml:"activeEpoch"`
		KeyType        string `yaml:"keyType"`
		Committees     uint64 `yaml:"attestation_committee_count"`
	}
	nodeEntry struct {
		Name         string       `yaml:"name"`
		PrivKey      string       `yaml:"privkey"`
		Fields       enrFieldsDoc `yaml:"enrFields"`
		MetricsPort  uint16       `yaml:"metricsPort,omitempty"`
		APIPort      uint16       `yaml:"apiPort,omitempty"`
		IsAggregator bool         `yaml:"isAggregator"`
		Count        int          `yaml:"count"`
	}
	enrFieldsDoc struct {
		IP   string `yaml:"ip"`
		QUIC uint16 `yaml:"quic"`
	}
	annotatedDoc struct {
		Index     int    `yaml:"index"`
		PublicKey string `yaml:"pubkey_hex"`
		File      string `yaml:"privkey_file"`
	}
)

func (s *GenesisSpec) configDoc() configDoc {
	doc := configDoc{
		GenesisTime:    s.GenesisTime,
		Committees:     firstNonZero(s.Committees, 1),
		ActiveEpochLog: s.ActiveEpochLog,
		ValidatorCount: len(s.Validators),
	}
	if d := s.slotDuration(); d != DefaultSlotDuration {
		doc.MillisPerSlot = d.Milliseconds()
	}
	for _, v := range s.Validators {
		doc.Validators = append(doc.Validators, validatorKeysDoc{
			Attestation: hex.EncodeToString(v.AttestationKey),
			Proposal:    hex.EncodeToString(v.ProposalKey),
		})
	}

	return doc
}

func (s *GenesisSpec) validatorConfigDoc() validatorConfigDoc {
	doc := validatorConfigDoc{
		Shuffle:        "roundrobin",
		DeploymentMode: "local",
		Config:         keyTypeDoc{ActiveEpochLog: s.ActiveEpochLog, KeyType: "hash-sig", Committees: firstNonZero(s.Committees, 1)},
	}
	for _, n := range s.Nodes {
		doc.Validators = append(doc.Validators, nodeEntry{
			Name:         n.Name,
			PrivKey:      hex.EncodeToString(n.PrivateKey[:]),
			Fields:       enrFieldsDoc{IP: n.IP.String(), QUIC: n.QUICPort},
			MetricsPort:  n.MetricsPort,
			APIPort:      n.APIPort,
			IsAggregator: n.IsAggregator,
			Count:        n.Count,
		})
	}

	return doc
}

// validatorsDoc returns the indices of each node, by name.
func (s *GenesisSpec) validatorsDoc(assigned [][]int) map[string][]int {
	doc := make(map[string][]int, len(s.Nodes))
	for i, n := range s.Nodes {
		doc[n.Name] = append([]int{}, assigned[i]...)
	}

	return doc
}

// annotatedDoc returns the keys of each node, by name. A key without a secret
// has no entry.
func (s *GenesisSpec) annotatedDoc(assigned [][]int) map[string][]annotatedDoc {
	doc := make(map[string][]annotatedDoc, len(s.Nodes))
	for i, n := range s.Nodes {
		entries := []annotatedDoc{}
		for _, index := range assigned[i] {
			v := &s.Validators[index]
			id := wire.ValidatorIndex(index) //nolint:gosec // not negative
			if v.AttestationSecret != nil {
				entries = append(entries, annotatedDoc{index, hex.EncodeToString(v.AttestationKey), SecretKeyFile(id, RoleAttester)})
			}
			if v.ProposalSecret != nil {
				entries = append(entries, annotatedDoc{index, hex.EncodeToString(v.ProposalKey), SecretKeyFile(id, RoleProposer)})
			}
		}
		doc[n.Name] = entries
	}

	return doc
}

// profileDoc returns aggnode.yaml.
func (s *GenesisSpec) profileDoc(profile *wire.Profile) profileYAML {
	doc := profileYAML{Profile: profile.Name, Scheme: profile.Scheme, Backend: s.Backend}
	if s.RegistryLimit != 0 {
		doc.RegistryLimit = &s.RegistryLimit
	}

	return doc
}

// nodesDoc returns nodes.yaml: the records of all nodes.
func (s *GenesisSpec) nodesDoc() ([]byte, error) {
	var records []string
	for _, n := range s.Nodes {
		e, err := NewENR(n.PrivateKey, ENRFields{Seq: 1, IP: n.IP, QUICPort: n.QUICPort, IsAggregator: n.IsAggregator})
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Name, err)
		}
		records = append(records, e.String())
	}

	return marshalYAML(records)
}
