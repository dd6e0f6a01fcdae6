package aggregate

import (
	"crypto/sha256"
	"fmt"
	"time"

	"aggnode/prover"
	"aggnode/pubkeycache"
	"aggnode/wire"
)

// plan is the choice of material for one job. Immutable.
type plan struct {
	group    Group // the data root's material that raw and children were chosen from
	raw      []RawVote
	children []*Pooled
	members  *set // union of both
	gain     int  // members that no aggregate of the data root covers
	width    int  // members
	isProbe  bool // runs although it does not fit
	cost     time.Duration
	deadline time.Time // soft: by when it should end
	key      planKey
}

// planKey identifies a plan by its content.
type planKey [sha256.Size]byte

// widthMargin is what a job that covers nobody new must leave: a quarter of its time. Not doing it loses no vote, but a
// prover that is killed at its deadline needs seconds to start again. A guess, not measured.
const widthMargin = 1.25

// need is the time that must be left for the job to be started.
func (p *plan) need() time.Duration {
	if p.gain == 0 {
		return time.Duration(widthMargin * float64(p.cost))
	}
	return p.cost
}

// participants returns who the job is over, in the shortest form.
func (p *plan) participants() wire.Participants {
	out, err := wire.NewParticipants(p.members.indices())
	if err != nil {
		panic("aggregate: a set has an index beyond its own size: " + err.Error())
	}
	return out
}

func (p *plan) fingerprint() planKey {
	h := sha256.New()
	h.Write(p.group.Root[:])
	var raw set
	for _, r := range p.raw {
		raw.add(r.Index)
	}
	raw.writeTo(h)
	for _, c := range p.children {
		c.members.writeTo(h)
	}
	return planKey(h.Sum(nil))
}

// job returns the prover's form of the plan. Nothing in it is copied but the public keys.
func (p *plan) job(keys keyring) prover.Job {
	epoch, _ := p.group.Data.Slot.Epoch() // decide takes no slot without one
	j := prover.Job{Message: p.group.Root, Epoch: uint32(epoch)}
	for _, r := range p.raw {
		j.Raw = append(j.Raw, prover.Raw{PublicKey: keys.key(r.Index), Signature: r.Signature})
	}
	for _, c := range p.children {
		j.Children = append(j.Children, prover.Child{
			Claim: prover.Claim{Message: p.group.Root, Epoch: uint32(epoch), SignerSet: keys.signerSet(c.Aggregate.Participants)},
			Proof: c.Aggregate.Proof,
		})
	}
	return j
}

// keyring gives the attestation keys in the form that the prover takes, which is the one that the registry keeps. All
// validators of the pool are in the registry.
type keyring struct{ registry *pubkeycache.Registry }

func (k keyring) key(v wire.ValidatorIndex) []byte {
	key, ok := k.registry.AttestationKeyBytes(v)
	if !ok {
		panic(fmt.Sprintf("aggregate: validator %d in the pool, but not in the registry", v))
	}
	return key
}

func (k keyring) signerSet(p wire.Participants) []byte {
	keys, err := k.registry.SignerKeys(p)
	if err != nil {
		panic("aggregate: a pooled aggregate without a signer set: " + err.Error())
	}
	return keys
}
