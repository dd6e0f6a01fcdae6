package prover

import (
	"encoding/binary"
	"fmt"
	"time"
)

// The bodies of the frames, one type each. docs/prover-protocol.md has the byte tables; the order of fields here is
// the order on the wire. Encoding and decoding are exact inverses.

// magic opens hello and ready, so that a program which is no prover is told from one of another version.
const magic = "aggprove"

// Kinds of known answers.
const (
	knownSignature uint8 = 1
	knownProof     uint8 = 2
)

// Verdicts on known answers.
const (
	verdictSkipped  uint8 = 0 // of a scheme that the child is not for
	verdictAccepted uint8 = 1
	verdictRefused  uint8 = 2
)

// known is one known answer of a hello: a claim with a signature (one key) or a proof, of which only the sender knows
// whether it is sound.
type known struct {
	scheme string
	what   uint8
	claim  Claim
	bytes  []byte
}

type hello struct {
	versionMin, versionMax uint16
	role                   Role
	threads, calls         uint16
	progress               time.Duration // whole milliseconds
	scheme                 string
	known                  []known
}

func (h *hello) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, h.versionMin)
	b = binary.LittleEndian.AppendUint16(b, h.versionMax)
	b = append(b, byte(h.role), 0)
	b = binary.LittleEndian.AppendUint16(b, h.threads)
	b = binary.LittleEndian.AppendUint16(b, h.calls)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.progress/time.Millisecond))
	b = appendText(b, h.scheme)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.known)))
	for i := range h.known {
		k := &h.known[i]
		b = appendText(b, k.scheme)
		b = append(b, k.what)
		b = appendClaim(b, k.claim)
		b = appendBlob(b, k.bytes)
	}
	return b
}

type ready struct {
	version                 uint16
	caps                    Capabilities
	verdicts                []uint8 // one for each known answer, in order
	ownAccepted, ownRefused uint16  // self-made proofs: sound ones accepted, altered ones refused
}

// Flags of ready.
const (
	flagOverlap  = 1 << 0
	flagClaims   = 1 << 1
	flagSamples  = 1 << 2
	flagsAllowed = flagOverlap | flagClaims | flagSamples
)

// maxCount bounds the counts and sizes that a child may name for itself, so that they fit an int everywhere.
const maxCount = 1 << 24

// maxMemory bounds the memory that a child may say it needs, in bytes: one TiB for each figure.
const maxMemory = 1 << 40

func decodeReady(body []byte) (ready, error) {
	d := decoder{b: body}
	var r ready
	if string(d.take(len(magic))) != magic {
		d.fail("no prover protocol")
	}
	r.version = d.u16()
	c := &r.caps
	c.Backend, c.Revision, c.Scheme = d.text(maxStringSize), d.text(maxStringSize), d.text(maxStringSize)
	for _, to := range []*int{
		&c.PublicKeySize, &c.SignatureSize, &c.MaxChildren, &c.MaxRaw, &c.MaxSigners, &c.MinInputs, &c.ProofBytesMax,
		&c.Threads,
	} {
		v := d.u32()
		if v > maxCount {
			d.fail("a count of %d, limit %d", v, maxCount)
		}
		*to = int(v)
	}
	flags := d.u32()
	if flags&^flagsAllowed != 0 {
		d.fail("unknown flags %#x", flags&^flagsAllowed)
	}
	c.ChildrenMayOverlap, c.ClaimsInProof, c.Samples = flags&flagOverlap != 0, flags&flagClaims != 0, flags&flagSamples != 0
	for _, to := range []*int64{&c.SetupMemory, &c.ProveMemory, &c.MemoryPerRaw, &c.MemoryPerChild} {
		v := d.u64()
		if v > maxMemory {
			d.fail("memory of %d bytes, limit %d", v, int64(maxMemory))
		}
		*to = int64(v)
	}
	r.verdicts = d.take(int(d.u16()))
	r.ownAccepted, r.ownRefused = d.u16(), d.u16()
	return r, d.end()
}

// request is a verify or inspect body: for inspect the claim is empty.
type request struct {
	deadline time.Duration // what is left for the call, whole milliseconds; advice only
	claim    Claim
	proof    []byte
}

func (r *request) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, millis(r.deadline))
	b = appendClaim(b, r.claim)
	return appendBlob(b, r.proof)
}

// appendJob appends a prove body. All signatures have the length of the first; the caller has checked that.
func appendJob(b []byte, deadline time.Duration, j *Job) []byte {
	b = binary.LittleEndian.AppendUint32(b, millis(deadline))
	b = binary.LittleEndian.AppendUint32(b, j.Epoch)
	b = append(b, j.Message[:]...)
	size := 0
	if len(j.Raw) > 0 {
		size = len(j.Raw[0].Signature)
	}
	b = appendRaws(b, size, j.Raw)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(j.Children)))
	for i := range j.Children {
		b = appendClaim(b, j.Children[i].Claim)
		b = appendBlob(b, j.Children[i].Proof)
	}
	return b
}

func appendRaws(b []byte, size int, raws []Raw) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(raws)))
	for i := range raws {
		b = append(b, raws[i].PublicKey...)
		b = append(b, raws[i].Signature...)
	}
	return b
}

func (d *decoder) raws() []Raw {
	size := d.u32()
	if size > maxSignatureSize {
		d.fail("signatures of %d bytes, limit %d", size, maxSignatureSize)
	}
	n := d.count(PublicKeySize + int(size))
	if n == 0 {
		return nil
	}
	raws := make([]Raw, n)
	for i := range raws {
		raws[i] = Raw{PublicKey: d.take(PublicKeySize), Signature: d.take(int(size))}
	}
	return raws
}

// minClaimSize is the length in bytes of a claim without keys.
const minClaimSize = 4 + MessageSize + 4

func appendClaim(b []byte, c Claim) []byte {
	b = binary.LittleEndian.AppendUint32(b, c.Epoch)
	b = append(b, c.Message[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Signers()))
	return append(b, c.SignerSet...)
}

func (d *decoder) claim() Claim {
	c := Claim{Epoch: d.u32(), Message: d.message()}
	c.SignerSet = d.take(d.count(PublicKeySize) * PublicKeySize)
	return c
}

// sampleRequest asks for count signatures of throw-away keys over one message.
type sampleRequest struct {
	count, epoch uint32
	message      [MessageSize]byte
}

func (s *sampleRequest) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, s.count)
	b = binary.LittleEndian.AppendUint32(b, s.epoch)
	return append(b, s.message[:]...)
}

func decodeSamples(body []byte) ([]Raw, error) {
	d := decoder{b: body}
	raws := d.raws()
	return raws, d.end()
}

// result answers prove (entries and the proof), verify and inspect (entries only).
type result struct {
	cpu, wall time.Duration
	foreign   uint32 // claims that are not (key, message) pairs of the scheme: any makes the proof unusable
	entries   []byte // (PublicKeySize + MessageSize) bytes each, a view of the frame
	proof     []byte // a view of the frame

	frame frame // that it was decoded from; release it when the views are done with
}

const entrySize = PublicKeySize + MessageSize

func decodeResult(body []byte) (result, error) {
	d := decoder{b: body}
	r := result{cpu: d.duration(), wall: d.duration(), foreign: d.u32()}
	r.entries = d.take(d.count(entrySize) * entrySize)
	r.proof = d.blob(maxProofSize)
	return r, d.end()
}

// duration takes nanoseconds; more than a year is a fault.
func (d *decoder) duration() time.Duration {
	v := d.u64()
	if v > uint64(365*24*time.Hour) {
		d.fail("a duration of %d ns", v)
		return 0
	}
	return time.Duration(v)
}

type progress struct {
	phase uint8
	cpu   time.Duration // of the child process since it started, all threads
	rss   uint64        // bytes
}

func decodeProgress(body []byte) (progress, error) {
	d := decoder{b: body}
	p := progress{phase: d.u8(), cpu: d.duration(), rss: d.u64()}
	return p, d.end()
}

// noIndex is the index of a refusal that is about no single input.
const noIndex = ^uint32(0)

func decodeRefusal(body []byte) (*RefusedError, error) {
	d := decoder{b: body}
	e := &RefusedError{Code: Code(d.u16()), Index: -1}
	if i := d.u32(); i != noIndex {
		if i > maxCount {
			d.fail("input %d", i)
		}
		e.Index = int(i)
	}
	e.Text = d.text(maxTextSize)
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("error frame: %w", err)
	}
	return e, nil
}

func millis(d time.Duration) uint32 {
	return uint32(min(max(d/time.Millisecond, 0), 1<<31))
}
