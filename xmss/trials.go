package xmss

import "context"

// Trials searches for the randomizer that Sign would take for message at epoch, and returns how many it looked at, the one
// found included. It is for measurements: the search is most of a signature, and its length is geometric, so that a time
// means something only beside its number of trials. It makes no signature and keeps nothing. Errors are those of Sign.
func (k *SecretKey) Trials(ctx context.Context, epoch uint32, message [MessageSize]byte) (int, error) {
	if err := k.inRange(epoch); err != nil {
		return 0, err
	}
	switch parts := k.parts.(type) {
	case *b2Key:
		found, err := parts.randomizer(ctx, epoch, &message)
		if err != nil {
			return 0, err
		}
		return found.trials, nil
	case *kcKey:
		bottom := kcTree{parts.secret, kcBottom}
		found, err := bottom.search(ctx, epoch, message[:])
		if err != nil {
			return 0, err
		}
		first := bottom.randomizerBase(epoch, message[:])
		return int(found.randomizer[0]-first[0]) + 1, nil // trial a has a added to the base
	}
	panic("xmss: key of no scheme")
}

// Leaves computes the leaves of epochs first to last and keeps none: what key generation and subtrees are made of, without
// the tree above. It is for measurements. The error is ErrEpochRange.
func (k *SecretKey) Leaves(first, last uint32) error {
	if err := k.inRange(first); err != nil {
		return err
	}
	if err := k.inRange(last); err != nil {
		return err
	}
	var hash treeHasher
	switch parts := k.parts.(type) {
	case *b2Key:
		hash = parts.secret
	case *kcKey:
		hash = kcTree{parts.secret, kcBottom}
	}
	var out [leavesPerCheck]node
	for e := uint64(first); e <= uint64(last); e += leavesPerCheck {
		hash.leaves(uint32(e), out[:min(leavesPerCheck, uint64(last)-e+1)])
	}
	return nil
}
