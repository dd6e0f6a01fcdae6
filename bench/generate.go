package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"aggnode/netconfig/devkeys"
	"aggnode/prover"
	"aggnode/wire"
	"aggnode/xmss"
)

// proofMaker makes proofs. prover.Client is one.
type proofMaker interface {
	Prove(ctx context.Context, j prover.Job) (prover.Result, error)
}

// GenerateTrace signs the votes and makes the proofs of the trace, and writes it as a capture. The result depends on the
// keys and the backend alone: signatures and proofs are deterministic. 64 signatures take about 30 s of CPU and 16 proofs of
// 32 signatures about 20 s (lean-pq 0.7.0).
func GenerateTrace(ctx context.Context, w io.Writer, maker proofMaker, progress io.Writer) error {
	n, err := traceNetwork()
	if err != nil {
		return err
	}
	root := n.data.HashTreeRoot()
	signatures, err := signVotes(ctx, n, root, progress)
	if err != nil {
		return err
	}
	start := time.Unix(traceGenesis, 0).Add(time.Duration(traceSlot) * traceSlotDuration)
	c, err := NewCaptureWriter(w, CaptureHeader{
		Network: wire.DefaultNetwork, Profile: n.profile.Name, Scheme: n.profile.Scheme,
		Genesis: time.Unix(traceGenesis, 0), SlotDuration: traceSlotDuration, Start: start,
	})
	if err != nil {
		return err
	}
	interval := traceSlotDuration / wire.IntervalsPerSlot
	raw := make([]prover.Raw, len(signatures))
	for i, sig := range signatures { // votes spread over interval 1
		v := wire.ValidatorIndex(i)
		key, _ := n.registry.AttestationKey(v) // signVotes had it
		raw[i] = prover.Raw{PublicKey: key[:], Signature: sig}
		payload, err := n.profile.EncodeAttestation(&wire.SignedAttestation{ValidatorIndex: v, Data: n.data, Signature: sig})
		if err != nil {
			return err
		}
		offset := interval + time.Duration(i)*interval/time.Duration(len(signatures))
		if err := c.write(offset, wire.Topic{Kind: wire.TopicAttestation}, payload); err != nil {
			return err
		}
	}
	for i := range traceAggregates { // aggregates spread over interval 2
		participants, err := window(i)
		if err != nil {
			return err
		}
		job := prover.Job{Message: root, Epoch: uint32(traceSlot)}
		for _, v := range participants.Indices() {
			job.Raw = append(job.Raw, raw[v])
		}
		result, err := maker.Prove(ctx, job)
		if err != nil {
			return fmt.Errorf("prove aggregate %d: %w", i, err)
		}
		say(progress, "proof %d of %d: %d bytes in %.2f s", i+1, traceAggregates, len(result.Proof), result.Wall.Seconds())
		payload, err := n.profile.EncodeAggregate(&wire.SignedAggregate{Data: n.data, Participants: participants, Proof: result.Proof})
		if err != nil {
			return err
		}
		offset := 2*interval + time.Duration(i)*interval/traceAggregates
		if err := c.write(offset, wire.Topic{Kind: wire.TopicAggregation}, payload); err != nil {
			return err
		}
	}
	return nil
}

// write compresses and appends a message.
func (c *CaptureWriter) write(offset time.Duration, topic wire.Topic, payload []byte) error {
	return c.Write(CaptureRecord{Offset: offset, Topic: topic.Name(wire.DefaultNetwork), Message: wire.Compress(nil, payload)})
}

// signVotes signs with all keys, on all cores.
func signVotes(ctx context.Context, n *network, root wire.DataRoot, progress io.Writer) ([][]byte, error) {
	keys, _, err := devkeys.Load(n.profile.Scheme)
	if err != nil {
		return nil, err
	}
	signatures := make([][]byte, len(keys))
	var done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range keys {
		g.Go(func() error {
			key, err := xmss.ParseSecretKey(keys[i].File)
			if err != nil {
				return fmt.Errorf("load key of validator %d: %w", i, err)
			}
			signatures[i], err = key.Sign(ctx, uint32(traceSlot), root)
			if k := done.Add(1); k%8 == 0 {
				say(progress, "signed %d of %d votes", k, len(keys))
			}
			return err
		})
	}
	return signatures, g.Wait()
}

// say prints a line of progress, nothing without a writer.
func say(w io.Writer, format string, args ...any) {
	if w != nil {
		_, _ = fmt.Fprintf(w, format+"\n", args...) // progress that can not be shown stops nothing
	}
}
