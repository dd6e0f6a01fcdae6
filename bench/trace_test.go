package bench

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/prover"
	"aggnode/wire"
	"aggnode/xmss"
)

func TestTheTraceHoldsWhatTheMeasurementsNeed(t *testing.T) {
	t.Parallel()
	tr, err := loadTrace()
	require.NoError(t, err)
	root := tr.data.HashTreeRoot()
	checks, answers := make([]xmss.Check, len(tr.raw)), make([]xmss.Answer, len(tr.raw))
	for i, r := range tr.raw {
		checks[i] = xmss.Check{PublicKey: xmss.PublicKey(r.PublicKey), Epoch: uint32(traceSlot), Message: root, Signature: r.Signature}
	}
	xmss.Keccak.VerifyBatch(checks, answers)
	for i := range answers {
		require.NoError(t, answers[i].Err, "vote %d", i)
	}
	require.GreaterOrEqual(t, len(tr.aggregates), burstSize, "a burst has no aggregate twice")
	require.GreaterOrEqual(t, len(tr.votes), votesPerPass)
	for i, c := range tr.children {
		require.Equal(t, traceWidth, c.Claim.Signers())
		p, err := window(i)
		require.NoError(t, err)
		claim, err := tr.claim(p)
		require.NoError(t, err)
		require.Equal(t, claim, c.Claim)
		for j := range i {
			other, err := window(j)
			require.NoError(t, err)
			require.False(t, p.IsSubsetOf(other) || other.IsSubsetOf(p))
		}
	}
	job := tr.job(3, 2)
	require.Len(t, job.Raw, 3)
	require.Equal(t, root, wire.DataRoot(job.Message))
}

func TestATraceOfAnotherNetworkIsRefused(t *testing.T) {
	t.Parallel()
	whole, err := traceFiles.ReadFile(traceFile)
	require.NoError(t, err)
	header, records, err := decode(whole)
	require.NoError(t, err)
	write := func(h CaptureHeader, records ...CaptureRecord) []byte {
		var b bytes.Buffer
		w, err := NewCaptureWriter(&b, h)
		require.NoError(t, err)
		for _, r := range records {
			require.NoError(t, w.Write(r))
		}
		return b.Bytes()
	}
	with := func(at int, change func(*CaptureRecord)) []byte {
		changed := append([]CaptureRecord(nil), records...)
		change(&changed[at])
		return write(header, changed...)
	}
	payload := func(r CaptureRecord) []byte {
		b, err := wire.Decompress(r.Message, wire.MaxPayloadSize)
		require.NoError(t, err)
		return b
	}
	last := len(records) - 1
	other := header
	other.Scheme = "blake2s"
	require.NoError(t, func() error { _, err := readTrace(write(header, records...)); return err }())
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"another scheme":  write(other, records...),
		"a vote less":     write(header, records[1:]...),
		"no aggregate":    write(header, records[:64]...),
		"another topic":   with(0, func(r *CaptureRecord) { r.Topic = "nothing" }),
		"a block":         with(0, func(r *CaptureRecord) { r.Topic = wire.Topic{Kind: wire.TopicBlock}.Name(header.Network) }),
		"no snappy":       with(0, func(r *CaptureRecord) { r.Message = []byte{0xff} }),
		"a short vote":    with(0, func(r *CaptureRecord) { r.Message = wire.Compress(nil, payload(*r)[1:]) }),
		"no aggregate's":  with(last, func(r *CaptureRecord) { r.Message = wire.Compress(nil, []byte{1}) }),
		"another slot":    with(0, func(r *CaptureRecord) { p := payload(*r); p[8]++; r.Message = wire.Compress(nil, p) }),
		"another root":    with(last, func(r *CaptureRecord) { p := payload(*r); p[9]++; r.Message = wire.Compress(nil, p) }),
		"a validator 255": with(0, func(r *CaptureRecord) { p := payload(*r); p[0] = 255; r.Message = wire.Compress(nil, p) }),
	} {
		_, err := readTrace(b)
		require.Error(t, err, name)
	}
}

type refusingMaker struct{}

func (refusingMaker) Prove(context.Context, prover.Job) (prover.Result, error) {
	return prover.Result{}, prover.ErrUnavailable
}

func TestGenerationStopsWhenItIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, GenerateTrace(ctx, io.Discard, refusingMaker{}, nil), context.Canceled)
}
