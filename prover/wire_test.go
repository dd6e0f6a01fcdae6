package prover

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleClaim(n int) Claim {
	var keys [][]byte
	for i := range n {
		keys = append(keys, fakeKey(i))
	}
	return Claim{Message: [32]byte{1, 2, 3}, Epoch: 77, SignerSet: NewSignerSet(keys)}
}

func sampleJobs() []Job {
	small := fakeJob(0, 2)
	merge := fakeJob(0, 1)
	merge.Children = []Child{{Claim: sampleClaim(3), Proof: []byte("proof")}, {Claim: sampleClaim(1), Proof: []byte{9}}}
	return []Job{small, merge, {Epoch: 1, Children: merge.Children}}
}

func TestBodiesSurviveTheWire(t *testing.T) {
	t.Parallel()
	h := hello{
		versionMin: 1, versionMax: 3, role: RoleVerify, threads: 2, calls: 4, progress: 250 * time.Millisecond, scheme: "toy",
		known: []known{{"toy", knownProof, sampleClaim(2), []byte("p")}, {"other", knownSignature, sampleClaim(1), nil}},
	}
	gotHello, err := decodeHello(h.append(nil))
	require.NoError(t, err)
	h.known[1].bytes = []byte{}
	require.Equal(t, h, gotHello)

	r := ready{version: 1, verdicts: []uint8{0, 1, 2}, ownAccepted: 1, ownRefused: 2, caps: Capabilities{
		Backend: "b", Revision: "r", Scheme: "s", PublicKeySize: 32, SignatureSize: 9, MaxChildren: 1, MaxRaw: 2, MaxSigners: 3,
		MinInputs: 1, ProofBytesMax: 5, Threads: 6, ChildrenMayOverlap: true, Samples: true, SetupMemory: 7, ProveMemory: 8,
		MemoryPerRaw: 9, MemoryPerChild: 10,
	}}
	gotReady, err := decodeReady(r.append(nil))
	require.NoError(t, err)
	require.Equal(t, r, gotReady)

	req := request{deadline: time.Second, claim: sampleClaim(3), proof: []byte("proof")}
	gotReq, err := decodeRequest(req.append(nil))
	require.NoError(t, err)
	require.Equal(t, req, gotReq)

	for _, j := range sampleJobs() {
		deadline, got, err := decodeJob(appendJob(nil, time.Minute, &j))
		require.NoError(t, err)
		require.Equal(t, time.Minute, deadline)
		require.Equal(t, j, got)
		require.Equal(t, len(appendJob(nil, 0, &j)), j.size())
	}

	res := result{cpu: 3, wall: 4, foreign: 5, entries: fakeEntries(sampleClaim(2)), proof: []byte("p")}
	gotRes, err := decodeResult(res.append(nil))
	require.NoError(t, err)
	require.Equal(t, res, gotRes)

	p := progress{phase: 2, cpu: time.Hour, rss: 1 << 40}
	gotP, err := decodeProgress(p.append(nil))
	require.NoError(t, err)
	require.Equal(t, p, gotP)

	for _, e := range []*RefusedError{{CodeBadSignature, 7, "text"}, {CodeInternal, -1, ""}, {Code(999), 0, "x"}} {
		got, err := decodeRefusal(appendRefusal(nil, e))
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.NotEmpty(t, got.Error())
	}

	s := sampleRequest{3, 4, [32]byte{5}}
	gotS, err := decodeSampleRequest(s.append(nil))
	require.NoError(t, err)
	require.Equal(t, s, gotS)
}

// Every prefix of a body is refused, and so is every body with a byte more.
func TestCutAndExtendedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	h := hello{known: []known{{"toy", knownProof, sampleClaim(1), []byte("p")}}}
	r := ready{verdicts: []uint8{1}}
	req := request{claim: sampleClaim(1), proof: []byte("p")}
	job := sampleJobs()[1]
	for name, c := range map[string]struct {
		body   []byte
		decode func([]byte) error
	}{
		"hello":    {h.append(nil), func(b []byte) error { _, err := decodeHello(b); return err }},
		"ready":    {r.append(nil), func(b []byte) error { _, err := decodeReady(b); return err }},
		"request":  {req.append(nil), func(b []byte) error { _, err := decodeRequest(b); return err }},
		"job":      {appendJob(nil, 0, &job), func(b []byte) error { _, _, err := decodeJob(b); return err }},
		"result":   {(&result{entries: make([]byte, 64)}).append(nil), func(b []byte) error { _, err := decodeResult(b); return err }},
		"progress": {(&progress{}).append(nil), func(b []byte) error { _, err := decodeProgress(b); return err }},
		"refusal":  {appendRefusal(nil, &RefusedError{1, 1, "t"}), func(b []byte) error { _, err := decodeRefusal(b); return err }},
		"samples":  {appendRaws(nil, 2, []Raw{{make([]byte, 32), []byte{1, 2}}}), func(b []byte) error { _, err := decodeSamples(b); return err }},
	} {
		require.NoError(t, c.decode(c.body), name)
		for n := range c.body {
			require.ErrorIs(t, c.decode(c.body[:n]), errFrame, "%s cut to %d", name, n)
		}
		require.ErrorIs(t, c.decode(append(bytes.Clone(c.body), 0)), errFrame, name)
	}
}

func TestReadFrame(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("x"), 200_000)
	whole := appendFrame(nil, frame{kind: kindResult, id: 42, body: body})
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(whole), "byte by byte": iotest.OneByteReader(bytes.NewReader(whole)),
		"with the end": iotest.DataErrReader(bytes.NewReader(whole)),
	} {
		f, err := readFrame(r, true, nil)
		require.NoError(t, err, name)
		require.Equal(t, frame{kind: kindResult, id: 42, body: body}, f, name)
	}
	_, err := readFrame(bytes.NewReader(nil), true, nil)
	require.Equal(t, io.EOF, err)
	for _, n := range []int{1, headerSize - 1, headerSize, headerSize + 1, len(whole) - 1} {
		_, err := readFrame(bytes.NewReader(whole[:n]), true, nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NotErrorIs(t, err, errFrame, "a sender that died is no bad sender")
	}
	broken := errors.New("broken")
	_, err = readFrame(io.MultiReader(bytes.NewReader(whole[:20]), iotest.ErrReader(broken)), true, nil)
	require.ErrorIs(t, err, broken)

	for name, change := range map[string]func([]byte){
		"a kind of the other side": func(b []byte) { b[4] = byte(kindProve) },
		"no kind":                  func(b []byte) { b[4] = 0xee },
		"reserved bytes":           func(b []byte) { b[6] = 1 },
		"over the limit":           func(b []byte) { binary.LittleEndian.PutUint32(b, limits[kindResult]+1) },
		"the greatest length":      func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<32-1) },
	} {
		b := bytes.Clone(whole)
		change(b)
		_, err := readFrame(bytes.NewReader(b), true, nil)
		require.ErrorIs(t, err, errFrame, name)
	}
}

// A header that claims the most that its kind allows costs one pipe buffer until bytes really come.
func TestALengthDoesNotAllocate(t *testing.T) {
	var before, after runtime.MemStats
	h := appendFrame(nil, frame{kind: kindProve})
	binary.LittleEndian.PutUint32(h, limits[kindProve])
	runtime.ReadMemStats(&before)
	_, err := readFrame(bytes.NewReader(h), false, nil)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*readChunk))
}

func TestNamesOfKindsAndCodes(t *testing.T) {
	t.Parallel()
	for k := range limits {
		require.False(t, strings.HasPrefix(k.String(), "kind_"), "kind %#x has a name", uint8(k))
	}
	for c := range codeNames {
		require.NotEmpty(t, Code(c).String())
	}
	require.Equal(t, "code_500", Code(500).String())
	require.Equal(t, []string{"unknown", "prove", "verify"}, []string{RoleUnknown.String(), RoleProve.String(), RoleVerify.String()})
}

func FuzzFrames(f *testing.F) {
	h := hello{known: []known{{"toy", knownProof, sampleClaim(1), []byte("p")}}}
	rd := ready{verdicts: []uint8{1}}
	req := request{claim: sampleClaim(1), proof: []byte("p")}
	job := sampleJobs()[1]
	for _, fr := range []frame{
		{kind: kindHello, id: 1, body: h.append(nil)},
		{kind: kindReady, id: 1, body: rd.append(nil)},
		{kind: kindVerify, id: 2, body: req.append(nil)},
		{kind: kindProve, id: 3, body: appendJob(nil, 0, &job)},
		{kind: kindResult, id: 3, body: (&result{entries: make([]byte, 64), proof: []byte{1}}).append(nil)},
		{kind: kindProgress, id: 3, body: (&progress{}).append(nil)},
		{kind: kindError, id: 3, body: appendRefusal(nil, &RefusedError{1, 1, "t"})},
		{kind: kindSamples, id: 4, body: appendRaws(nil, 2, []Raw{{make([]byte, 32), []byte{1, 2}}})},
		{kind: kindSample, id: 4, body: (&sampleRequest{}).append(nil)},
	} {
		f.Add(appendFrame(nil, fr))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, fromChild := range []bool{false, true} {
			fr, err := readFrame(bytes.NewReader(b), fromChild, nil)
			if err != nil {
				continue
			}
			require.Equal(t, b[:headerSize+len(fr.body)], appendFrame(nil, fr))
			again := func(got []byte, err error) {
				if err == nil {
					require.Equal(t, fr.body, got)
				}
			}
			switch fr.kind {
			case kindHello:
				h, err := decodeHello(fr.body)
				again(h.append(nil), err)
			case kindReady:
				r, err := decodeReady(fr.body)
				again(r.append(nil), err)
			case kindVerify, kindInspect:
				r, err := decodeRequest(fr.body)
				if r.deadline < 1<<31*time.Millisecond { // longer ones are cut when written
					again(r.append(nil), err)
				}
			case kindProve:
				_, _, _ = decodeJob(fr.body)
			case kindResult:
				r, err := decodeResult(fr.body)
				again(r.append(nil), err)
			case kindProgress:
				p, err := decodeProgress(fr.body)
				again(p.append(nil), err)
			case kindError:
				e, err := decodeRefusal(fr.body)
				if err == nil {
					again(appendRefusal(nil, e), nil)
				}
			case kindSamples:
				_, _ = decodeSamples(fr.body)
			case kindSample:
				s, err := decodeSampleRequest(fr.body)
				again(s.append(nil), err)
			}
		}
	})
}

func TestJobClaim(t *testing.T) {
	t.Parallel()
	a, b := sampleClaim(3), sampleClaim(5)
	j := Job{Message: a.Message, Epoch: a.Epoch, Raw: []Raw{{PublicKey: fakeKey(9)}, {PublicKey: fakeKey(1)}}, Children: []Child{{Claim: a}, {Claim: b}}}
	c := j.Claim()
	require.Equal(t, 6, c.Signers())
	require.True(t, c.isWellFormed())
	require.Equal(t, a.Message, c.Message)
	require.Equal(t, a.Epoch, c.Epoch)
	require.Empty(t, NewSignerSet(nil))
	require.False(t, Claim{SignerSet: make([]byte, 31)}.isWellFormed())
	require.False(t, Claim{SignerSet: make([]byte, 64)}.isWellFormed())
}

func TestStuckWatchTellsSlowFromStuck(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	w := stuckWatch{limit: 3 * time.Second, since: at(0)}
	require.False(t, w.isStuck(at(2900), 0))
	require.False(t, w.isStuck(at(2950), stuckCPU), "enough CPU starts a new window")
	require.False(t, w.isStuck(at(5900), stuckCPU+stuckCPU/2))
	require.True(t, w.isStuck(at(5950), stuckCPU+stuckCPU/2), "what a progress thread uses is not enough")
}

func TestKnownAnswersAreWhatTheySay(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, knownMaterial())
	for _, m := range knownMaterial() {
		require.True(t, m.claim.isWellFormed(), m.scheme)
		require.Len(t, m.raw, m.claim.Signers())
		j := Job{Message: m.claim.Message, Epoch: m.claim.Epoch, Raw: m.raw}
		require.Equal(t, m.claim, j.Claim(), m.scheme)
		sound, bad := 0, 0
		for _, e := range expectations(m.scheme) {
			if e.sound {
				sound++
			} else {
				bad++
			}
		}
		require.Positive(t, sound)
		require.Positive(t, bad)
	}
	require.Len(t, expectations(""), len(expectations("keccak"))+len(expectations("blake2s")))
	h := hello{}
	for _, e := range expectations("") {
		h.known = append(h.known, e.known)
	}
	require.Less(t, len(h.append(nil)), int(limits[kindHello]))
	require.LessOrEqual(t, len(h.known), maxKnown)
}
