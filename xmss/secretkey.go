package xmss

import (
	"context"
	"errors"
	"fmt"
)

// SeedSize is the length of a key's seed in bytes.
const SeedSize = 32

var (
	// ErrEpochRange: the epoch is outside the range of the key, or the range can not be had.
	ErrEpochRange = errors.New("epoch outside the range of the key")

	// errRow: a rebuilt subtree differs from the key's own row, so the key or this machine's memory is damaged.
	errRow = errors.New("rebuilt subtree differs from the stored row of the key")
	// errNoRandomizer can not be met in practice: 2^32 or more trials, each admissible with a chance of 2^-20 or better.
	errNoRandomizer = errors.New("no admissible randomizer")
)

// SecretKey signs at the epochs of its range. It holds the seed and must be kept as secrets are.
//
// It keeps no record of what it signed. Two messages at one epoch give the key away: whoever owns it keeps a durable mark of
// the last epoch. Signing is deterministic, so the same message at the same epoch again is harmless.
//
// Safe for concurrent use. Besides the level-9 row it keeps at most two subtrees of 512 leaves (16 KiB each): the ones used
// last.
type SecretKey struct {
	scheme     Scheme
	public     PublicKey
	start, end uint32
	seed       [SeedSize]byte
	parts      secretParts
}

// secretParts is the part of a key that is peculiar to its scheme. The epoch is in range in every call.
type secretParts interface {
	publicKey() PublicKey
	prepare(ctx context.Context, epoch uint32) error
	begin(ctx context.Context, epoch uint32, trials int) error
	search(ctx context.Context, epoch uint32, message *[MessageSize]byte) (reveal func() []byte, err error)
	appendRows(b []byte) []byte
}

// GenerateOptions are the means of key generation.
type GenerateOptions struct {
	Workers  int                   // goroutines that compute leaves; 0: one a processor
	Progress func(done, total int) // after each subtree of 512 leaves, one call at a time; nil: none
}

// Generate makes the key of seed over the epochs start..end, both included. The result depends on seed, start and end alone
// for blake2s; a keccak key has the same public key for every range.
//
// A blake2s key covers at most 2^18 epochs and costs 347 compressions an epoch. A keccak key may cover any range; it costs
// twice 2^16 leaves of 211 permutations (1.4 s of one core with AVX-512, 12 s in portable code) whatever the range, and each
// further block of 2^16 epochs is computed when it is first used.
func Generate(ctx context.Context, s Scheme, seed [SeedSize]byte, start, end uint32, opts GenerateOptions) (*SecretKey, error) {
	if err := s.checkRange(start, end); err != nil {
		return nil, err
	}
	k := &SecretKey{scheme: s, start: start, end: end, seed: seed}
	var err error
	if s == Blake2s {
		k.parts, err = generateB2(ctx, &seed, start, end, opts)
	} else {
		k.parts, err = generateKc(ctx, &seed, start, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("generate %s key: %w", s, err)
	}
	k.public = k.parts.publicKey()
	return k, nil
}

// checkRange says whether a key of the scheme can cover start..end.
func (s Scheme) checkRange(start, end uint32) error {
	most := s.params().mostEpochs
	switch {
	case !s.Valid():
		return ErrScheme
	case start > end:
		return fmt.Errorf("%w: first %d is after last %d", ErrEpochRange, start, end)
	case int64(end)-int64(start)+1 > most:
		return fmt.Errorf("%w: %d to %d is more than the %d epochs of a %s key", ErrEpochRange, start, end, most, s)
	}
	return nil
}

// Scheme is the scheme of the key.
func (k *SecretKey) Scheme() Scheme { return k.scheme }

// PublicKey is the key that the signatures verify under.
func (k *SecretKey) PublicKey() PublicKey { return k.public }

// Range is the first and the last epoch that the key signs at.
func (k *SecretKey) Range() (start, end uint32) { return k.start, k.end }

// String names the key without its secret.
func (k *SecretKey) String() string {
	return fmt.Sprintf("%s key %x of epochs %d to %d", k.scheme, k.public[:4], k.start, k.end)
}

// GoString keeps the seed out of %#v as well.
func (k *SecretKey) GoString() string { return k.String() }

// Prepare makes the subtree of epoch ready, so that Sign at the 512 epochs around it only searches for a randomizer: 2.4 ms
// (blake2s) or 6 ms (keccak) of one core with AVX-512, 26 or 47 ms in portable code; 0.7 or 6 s when a keccak epoch is the
// first used of its block of 2^16 (Intel Xeon with AVX-512, 2026-12). A subtree at hand costs nothing; one that another call
// is making is waited for. The two subtrees used last are kept, so that the next one can be made ahead. When ctx ends, its
// error is returned and nothing is kept of the work.
func (k *SecretKey) Prepare(ctx context.Context, epoch uint32) error {
	if err := k.inRange(epoch); err != nil {
		return err
	}
	if err := k.parts.prepare(ctx, epoch); err != nil {
		return fmt.Errorf("prepare epoch %d: %w", epoch, err)
	}
	return nil
}

// BegunTrialSize is the memory that a trial begun by Begin takes, in bytes.
const BegunTrialSize = 32

// Begin does what does not depend on the message for the first trials of the search at epoch, a third of each, so that Sign
// at that epoch is up to a third shorter: 26 ns of one core a trial with AVX2, of which a search makes 29,000 on average, and
// 32 bytes until Begin is called for another epoch; 0 trials give the memory back. Trials are rounded down to a multiple of
// 16. Signatures do not depend on it. A keccak key has nothing to begin. When ctx ends, its error is returned, and what was
// begun is used.
func (k *SecretKey) Begin(ctx context.Context, epoch uint32, trials int) error {
	if err := k.inRange(epoch); err != nil {
		return err
	}
	if err := k.parts.begin(ctx, epoch, trials); err != nil {
		return fmt.Errorf("begin trials of epoch %d: %w", epoch, err)
	}
	return nil
}

// Sign makes the signature of message at epoch, which the caller must not have used for another message. Deterministic. On
// average 1.2 ms (blake2s) or 55 ms (keccak) of one core with AVX-512, 13 ms or 0.45 s in portable code (Intel Xeon with
// AVX-512, 2026-12), exponentially distributed, and the time of Prepare when the subtree is not at hand. When ctx ends, its
// error is returned.
func (k *SecretKey) Sign(ctx context.Context, epoch uint32, message [MessageSize]byte) ([]byte, error) {
	reveal, err := k.Search(ctx, epoch, message)
	if err != nil {
		return nil, err
	}
	return reveal(), nil
}

// Search does all of Sign that uses nothing of the epoch up, which is nearly all of its time: it builds the subtree where it
// must and searches for the randomizer. reveal makes the signature of it, 20 us or less with AVX2; with it the epoch is used.
// So the search may run while the use is being recorded.
func (k *SecretKey) Search(ctx context.Context, epoch uint32, message [MessageSize]byte) (reveal func() []byte, err error) {
	if err := k.inRange(epoch); err != nil {
		return nil, err
	}
	reveal, err = k.parts.search(ctx, epoch, &message)
	if err != nil {
		return nil, fmt.Errorf("sign at epoch %d: %w", epoch, err)
	}
	return reveal, nil
}

func (k *SecretKey) inRange(epoch uint32) error {
	if epoch < k.start || epoch > k.end {
		return fmt.Errorf("%w: %d is not in %d to %d", ErrEpochRange, epoch, k.start, k.end)
	}
	return nil
}
