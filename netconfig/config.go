package netconfig

import (
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"aggnode/wire"
)

// config is what config.yaml says.
type config struct {
	path         string
	genesisTime  uint64
	slotDuration time.Duration // 0: not said
	committees   uint64        // 0: not said
	validators   []wire.Validator
}

// configYAML is config.yaml (lean-quickstart generate-genesis.sh; ethlambda for
// the slot length). Other keys are ignored.
type configYAML struct {
	GenesisTime    *uint64         `yaml:"GENESIS_TIME"`
	MillisPerSlot  *uint64         `yaml:"MILLISECONDS_PER_SLOT"`
	Committees     *uint64         `yaml:"ATTESTATION_COMMITTEE_COUNT"`
	ValidatorCount *int            `yaml:"VALIDATOR_COUNT"`
	Validators     []validatorYAML `yaml:"GENESIS_VALIDATORS"`
}

// validatorYAML is one validator: a mapping with two keys in one of two
// spellings, or one bare key.
type validatorYAML struct {
	attestation, proposal []byte
}

// UnmarshalYAML reads any of the forms.
func (v *validatorYAML) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var key hexBytes
		err := n.Decode(&key)
		v.attestation = key

		return err
	}
	var m struct {
		AttestationPubkey    hexBytes `yaml:"attestation_pubkey"`
		AttestationPublicKey hexBytes `yaml:"attestation_public_key"`
		ProposalPubkey       hexBytes `yaml:"proposal_pubkey"`
		ProposalPublicKey    hexBytes `yaml:"proposal_public_key"`
	}
	if err := n.Decode(&m); err != nil {
		return err
	}
	v.attestation = m.AttestationPubkey
	if v.attestation == nil {
		v.attestation = m.AttestationPublicKey
	}
	v.proposal = m.ProposalPubkey
	if v.proposal == nil {
		v.proposal = m.ProposalPublicKey
	}
	if v.attestation == nil || v.proposal == nil {
		return fmt.Errorf("line %d: a validator needs attestation_pubkey and proposal_pubkey", n.Line)
	}

	return nil
}

// loadConfig reads config.yaml, which must be there.
func loadConfig(path string) (*config, error) {
	var y configYAML
	ok, err := readYAML(path, &y, false)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: no such file, a network folder needs one", path)
	}
	c, err := y.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.path = path

	return c, nil
}

// check returns the values, or what is wrong with them.
func (y *configYAML) check() (*config, error) {
	c := &config{}
	if y.GenesisTime == nil {
		return nil, fmt.Errorf("GENESIS_TIME is missing")
	}
	if c.genesisTime = *y.GenesisTime; c.genesisTime > math.MaxInt64/1000 {
		return nil, fmt.Errorf("GENESIS_TIME %d is no time in seconds", c.genesisTime)
	}
	if y.MillisPerSlot != nil {
		if *y.MillisPerSlot > uint64(time.Hour/time.Millisecond) {
			return nil, fmt.Errorf("MILLISECONDS_PER_SLOT %d is more than an hour", *y.MillisPerSlot)
		}
		c.slotDuration = time.Duration(*y.MillisPerSlot) * time.Millisecond //nolint:gosec // at most an hour
		if err := checkSlotDuration(c.slotDuration); err != nil {
			return nil, fmt.Errorf("MILLISECONDS_PER_SLOT: %w", err)
		}
	}
	if y.Committees != nil {
		if c.committees = *y.Committees; c.committees == 0 {
			return nil, fmt.Errorf("ATTESTATION_COMMITTEE_COUNT must be positive")
		}
	}
	n := len(y.Validators)
	switch {
	case n == 0:
		return nil, fmt.Errorf("GENESIS_VALIDATORS is empty")
	case y.ValidatorCount != nil && *y.ValidatorCount != n:
		return nil, fmt.Errorf("VALIDATOR_COUNT is %d, GENESIS_VALIDATORS has %d entries", *y.ValidatorCount, n)
	}
	c.validators = make([]wire.Validator, n)
	for i, v := range y.Validators {
		c.validators[i] = wire.Validator{
			AttestationKey: v.attestation,
			ProposalKey:    v.proposal,
			Index:          wire.ValidatorIndex(i), //nolint:gosec // i is not negative
		}
	}

	return c, nil
}

// profileYAML is aggnode.yaml.
type profileYAML struct {
	Profile string `yaml:"profile"`
	Scheme  string `yaml:"scheme,omitempty"`
	Backend string `yaml:"backend,omitempty"`
	// RegistryLimit is wire.Profile.RegistryLimit, which the profile local alone
	// leaves open; nil is the limit of all other networks.
	RegistryLimit *int `yaml:"registry_limit,omitempty"`

	path string
}

// loadProfileFile reads aggnode.yaml. The file is ours: a key that is not known
// is an error. A folder without it is of the default profile.
func loadProfileFile(path string) (*profileYAML, error) {
	y := &profileYAML{path: path}
	if _, err := readYAML(path, y, true); err != nil {
		return nil, err
	}

	return y, nil
}

// profile returns the profile that the overrides or the file name. A scheme and
// a registry limit in the file belong to the file's profile and are dropped with
// it.
func (y *profileYAML) profile(o Overrides) (*wire.Profile, error) {
	name := firstNonZero(o.Profile, y.Profile, DefaultProfile)
	isTheFiles := o.Profile == "" || o.Profile == y.Profile
	scheme := o.Scheme
	if scheme == "" && isTheFiles {
		scheme = y.Scheme
	}
	p, err := wire.LookupProfile(name, scheme)
	if err != nil {
		if o.Profile == "" && y.Profile != "" {
			return nil, fmt.Errorf("%s: %w", y.path, err)
		}

		return nil, err
	}
	if isTheFiles && y.RegistryLimit != nil {
		if p, err = p.WithRegistryLimit(*y.RegistryLimit); err != nil {
			return nil, fmt.Errorf("%s: %w", y.path, err)
		}
	}
	if o.Envelope != wire.EnvelopeUnknown {
		p = p.WithEnvelope(o.Envelope)
	}

	return p, nil
}
