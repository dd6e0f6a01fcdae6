package chain

import "aggnode/wire"

// SyncStatus tells how far this view follows the network.
type SyncStatus uint8

// The states, with the names of leanMetrics.
const (
	// SyncUnknown is the zero value and no state.
	SyncUnknown SyncStatus = iota
	// SyncIdle: no block but genesis is known.
	SyncIdle
	// SyncSyncing: blocks are known, but the head is more than syncLag slots old.
	SyncSyncing
	// SyncSynced: the head is recent.
	SyncSynced
)

// syncLag is the age of the head in slots up to which the node counts as synced:
// two rounds of proposers in the smallest devnets, which have four (guess, not
// measured).
const syncLag = 8

// String returns the name of the state, the label of lean_node_sync_status.
func (s SyncStatus) String() string {
	switch s {
	case SyncUnknown:
		return "unknown"
	case SyncIdle:
		return "idle"
	case SyncSyncing:
		return "syncing"
	case SyncSynced:
		return "synced"
	}

	return "invalid"
}

// SyncStatus returns the state now.
func (t *Tree) SyncStatus() SyncStatus {
	head := t.Head()
	switch current := t.clock.Slot(); {
	case head.Slot == 0:
		return SyncIdle
	case head.Slot+syncLag >= current:
		return SyncSynced
	default:
		return SyncSyncing
	}
}

// Status returns what the node tells peers about its chain.
func (t *Tree) Status() wire.Status {
	return wire.Status{Finalized: t.Finalized(), Head: t.Head()}
}
