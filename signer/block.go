package signer

import (
	"context"
	"errors"

	"aggnode/store"
	"aggnode/wire"
)

// SignBlock signs a block root with the proposal key of v. The position is on
// disk before; another root of the same slot is refused. Errors are *Refused.
func (s *Signer) SignBlock(ctx context.Context, v wire.ValidatorIndex, slot wire.Slot, root wire.Root) ([]byte, error) {
	sig, err := s.signBlock(ctx, v, slot, root)
	if err != nil {
		err = refuse(v, slot, err)
		s.metrics.refuse(roleProposal, err)

		return nil, err
	}

	return sig, nil
}

func (s *Signer) signBlock(ctx context.Context, v wire.ValidatorIndex, slot wire.Slot, root wire.Root) ([]byte, error) {
	key := s.byIndex[v].proposal
	if key == nil {
		return nil, &Refused{RefusedUnknownValidator, v, slot, errors.New("no proposal key here")}
	}
	epoch, ok := slot.Epoch()
	if !ok {
		return nil, &Refused{RefusedSlotRange, v, slot, errors.New("no key has a position above 2^32-1")}
	}
	mark := store.Mark{Key: key.PublicKey(), Slot: uint64(slot), Root: root}
	if err := s.marks.Reserve(ctx, []store.Mark{mark})[0]; err != nil {
		return nil, err
	}

	return s.signSafely(ctx, key, epoch, root)
}
