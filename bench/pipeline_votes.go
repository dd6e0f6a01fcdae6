package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"aggnode/pubkeycache"
	"aggnode/wire"
	"aggnode/xmss"
)

// voteProfile is the line whose votes are sent: scheme blake2s, the one that a vote a validator can be signed for at start.
const voteProfile = "devnet5"

// slotVotes are the votes of one slot, each of another validator, as gossip carries them. Immutable.
type slotVotes struct {
	*network
	messages [][]byte // by validator index, compressed
}

// makeSlotVotes makes a key for each of n validators that signs at the slot of the trace and nowhere else, and signs with
// all of them on all cores: about 1.5 ms of one core a vote with AVX-512, 16 ms in portable code. The keys are nobody's: their
// seeds are hashes of the validator index.
func makeSlotVotes(ctx context.Context, n int, progress io.Writer) (*slotVotes, error) {
	profile, err := wire.LookupProfile(voteProfile, "")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	keys := make([]*xmss.SecretKey, n)
	validators := make([]wire.Validator, n)
	err = onAllCores(ctx, n, func(ctx context.Context, i int) (err error) {
		epoch := uint32(traceSlot)
		keys[i], err = xmss.Generate(ctx, xmss.Blake2s, seedOf("attestation", i), epoch, epoch, xmss.GenerateOptions{Workers: 1})
		if err != nil {
			return err
		}
		attestation, proposal := keys[i].PublicKey(), seedOf("proposal", i) // any 32 bytes are a public key
		validators[i] = wire.Validator{Index: wire.ValidatorIndex(i), AttestationKey: attestation[:], ProposalKey: proposal[:]}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v := &slotVotes{network: &network{profile: profile}, messages: make([][]byte, n)}
	if v.registry, err = pubkeycache.NewRegistry(xmss.Blake2s, validators); err != nil {
		return nil, err
	}
	if _, v.genesisRoot, err = profile.GenesisBlock(traceGenesis, validators); err != nil {
		return nil, err
	}
	genesis := wire.Checkpoint{Root: v.genesisRoot}
	v.data = wire.AttestationData{Slot: traceSlot, Head: genesis, Target: genesis, Source: genesis}
	root := v.data.HashTreeRoot()
	var done atomic.Int64
	err = onAllCores(ctx, n, func(ctx context.Context, i int) error {
		sig, err := keys[i].Sign(ctx, uint32(traceSlot), root)
		if err != nil {
			return err
		}
		vote := &wire.SignedAttestation{ValidatorIndex: wire.ValidatorIndex(i), Data: v.data, Signature: sig}
		payload, err := profile.EncodeAttestation(vote)
		if err != nil {
			return err
		}
		v.messages[i] = wire.Compress(nil, payload)
		if k := done.Add(1); k%1024 == 0 {
			say(progress, "signed %d of %d votes", k, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	say(progress, "%d votes of one slot signed in %.1f s", n, time.Since(began).Seconds())
	return v, nil
}

// seedOf returns 32 bytes for a role of a validator.
func seedOf(role string, index int) [xmss.SeedSize]byte {
	return sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("aggnode bench "+role+" "), uint64(index)))
}

// onAllCores calls do for 0 to n-1 in as many goroutines as there are processors, and returns the first error.
func onAllCores(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// save writes the votes as a capture, spread over the slot at a rate a second, for the sending process.
func (v *slotVotes) save(dir string, rate int) (file string, err error) {
	file = filepath.Join(dir, "votes.capture")
	f, err := os.Create(file)
	if err != nil {
		return "", fmt.Errorf("save votes: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	c, err := NewCaptureWriter(f, CaptureHeader{
		Network: wire.DefaultNetwork, Profile: v.profile.Name, Scheme: v.profile.Scheme,
		Genesis: time.Unix(traceGenesis, 0), SlotDuration: voteSlotDuration,
		Start: time.Unix(traceGenesis, 0).Add(time.Duration(traceSlot) * voteSlotDuration),
	})
	if err != nil {
		return "", err
	}
	topic := voteTopic(0)
	for i, m := range v.messages {
		if err := c.Write(CaptureRecord{Offset: atRate(i, rate), Topic: topic, Message: m}); err != nil {
			return "", err
		}
	}
	return file, nil
}

// atRate is when the item of a place is due.
func atRate(place, rate int) time.Duration {
	return time.Duration(int64(place) * int64(time.Second) / int64(rate))
}

// voteTopic is the topic name of a pass: attestation subnet number pass.
func voteTopic(pass int) string {
	return wire.Topic{Kind: wire.TopicAttestation, Subnet: wire.SubnetID(pass)}.Name(wire.DefaultNetwork)
}
