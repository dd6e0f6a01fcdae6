package prover

import (
	"encoding/binary"
	"time"
)

// The child's half of the codec: what a backend written in Go would decode and encode.

// appendFrame appends the header and the body.
func appendFrame(b []byte, f frame) []byte {
	whole := append(newBody(len(f.body)), f.body...)
	seal(whole, f.kind, f.id)
	return append(b, whole...)
}

func decodeHello(body []byte) (hello, error) {
	d := decoder{b: body}
	var h hello
	if string(d.take(len(magic))) != magic {
		d.fail("no prover protocol")
	}
	h.versionMin, h.versionMax = d.u16(), d.u16()
	h.role = Role(d.u8())
	if d.u8() != 0 {
		d.fail("reserved byte set")
	}
	h.threads, h.calls = d.u16(), d.u16()
	h.progress = time.Duration(d.u32()) * time.Millisecond
	h.scheme = d.text(maxStringSize)
	n := int(d.u16())
	if n > maxKnown {
		d.fail("%d known answers, limit %d", n, maxKnown)
	}
	for range n {
		k := known{scheme: d.text(maxStringSize), what: d.u8(), claim: d.claim(), bytes: d.blob(maxProofSize)}
		if d.err != nil {
			break
		}
		h.known = append(h.known, k)
	}
	return h, d.end()
}

func (r *ready) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, r.version)
	c := &r.caps
	b = appendText(b, c.Backend)
	b = appendText(b, c.Revision)
	b = appendText(b, c.Scheme)
	var flags uint32
	for bit, on := range map[uint32]bool{
		flagOverlap: c.ChildrenMayOverlap, flagClaims: c.ClaimsInProof, flagSamples: c.Samples,
	} {
		if on {
			flags |= bit
		}
	}
	for _, v := range []uint32{
		uint32(c.PublicKeySize), uint32(c.SignatureSize), uint32(c.MaxChildren), uint32(c.MaxRaw),
		uint32(c.MaxSigners), uint32(c.MinInputs), uint32(c.ProofBytesMax), uint32(c.Threads), flags,
	} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []int64{c.SetupMemory, c.ProveMemory, c.MemoryPerRaw, c.MemoryPerChild} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.verdicts)))
	b = append(b, r.verdicts...)
	b = binary.LittleEndian.AppendUint16(b, r.ownAccepted)
	return binary.LittleEndian.AppendUint16(b, r.ownRefused)
}

func decodeRequest(body []byte) (request, error) {
	d := decoder{b: body}
	r := request{
		deadline: time.Duration(d.u32()) * time.Millisecond,
		claim:    d.claim(),
		proof:    d.blob(maxProofSize),
	}
	return r, d.end()
}

func decodeJob(body []byte) (time.Duration, Job, error) {
	d := decoder{b: body}
	deadline := time.Duration(d.u32()) * time.Millisecond
	j := Job{Epoch: d.u32(), Message: d.message(), Raw: d.raws()}
	for range d.count(minClaimSize + 4) {
		c := Child{Claim: d.claim(), Proof: d.blob(maxProofSize)}
		if d.err != nil {
			break
		}
		j.Children = append(j.Children, c)
	}
	return deadline, j, d.end()
}

func decodeSampleRequest(body []byte) (sampleRequest, error) {
	d := decoder{b: body}
	s := sampleRequest{count: d.u32(), epoch: d.u32(), message: d.message()}
	return s, d.end()
}

func (r *result) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.cpu))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.wall))
	b = binary.LittleEndian.AppendUint32(b, r.foreign)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.entries)/entrySize))
	b = append(b, r.entries...)
	return appendBlob(b, r.proof)
}

func (p *progress) append(b []byte) []byte {
	b = append(b, p.phase)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.cpu))
	return binary.LittleEndian.AppendUint64(b, p.rss)
}

func appendRefusal(b []byte, e *RefusedError) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(e.Code))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Index))
	return appendText(b, e.Text[:min(len(e.Text), maxTextSize)])
}
