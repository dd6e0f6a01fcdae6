package aggregate

import (
	"maps"

	"aggnode/wire"
)

// crashesToQuarantine is how often one plan may cost the prover its process. Once may be the machine; twice is the input.
const crashesToQuarantine = 2

// bars remembers what the prover can not take: votes and children that it refused by name, plans that crashed it. Each
// job adds at most one entry and entries go with their slot, so the size is bounded by the jobs of a few slots. Owned by
// the aggregator's loop.
type bars struct {
	votes    map[voteKey]wire.Slot
	children map[*Pooled]wire.Slot // the same bytes do not enter the pool twice while these are in it
	plans    map[planKey]barredPlan
}

type voteKey struct {
	root  wire.DataRoot
	index wire.ValidatorIndex
}

type barredPlan struct {
	slot    wire.Slot
	crashes int
}

func newBars() *bars {
	return &bars{
		votes:    make(map[voteKey]wire.Slot),
		children: make(map[*Pooled]wire.Slot),
		plans:    make(map[planKey]barredPlan),
	}
}

func (b *bars) hasVote(root wire.DataRoot, v wire.ValidatorIndex) bool {
	_, has := b.votes[voteKey{root, v}]
	return has
}

func (b *bars) hasChild(a *Pooled) bool {
	_, has := b.children[a]
	return has
}

func (b *bars) hasPlan(k planKey) bool { return b.plans[k].crashes >= crashesToQuarantine }

func (b *bars) addVote(root wire.DataRoot, v wire.ValidatorIndex, slot wire.Slot) {
	b.votes[voteKey{root, v}] = slot
}

func (b *bars) addChild(a *Pooled, slot wire.Slot) { b.children[a] = slot }

// addCrash counts a crash of the plan and tells whether it is quarantined now.
func (b *bars) addCrash(k planKey, slot wire.Slot) bool {
	e := b.plans[k]
	e.slot, e.crashes = slot, e.crashes+1
	b.plans[k] = e
	return e.crashes >= crashesToQuarantine
}

// quarantine bars the plan at once.
func (b *bars) quarantine(k planKey, slot wire.Slot) {
	b.plans[k] = barredPlan{slot: slot, crashes: crashesToQuarantine}
}

// prune forgets what is about slots that the planner does not look at any more.
func (b *bars) prune(now wire.Slot) {
	isOld := func(s wire.Slot) bool { return age(s, now) >= aggregateWindow }
	maps.DeleteFunc(b.votes, func(_ voteKey, s wire.Slot) bool { return isOld(s) })
	maps.DeleteFunc(b.children, func(_ *Pooled, s wire.Slot) bool { return isOld(s) })
	maps.DeleteFunc(b.plans, func(_ planKey, e barredPlan) bool { return isOld(e.slot) })
}
