package prover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// kind is the type of a frame. Kinds below 0x80 go to the child, the others come from it.
type kind uint8

const (
	kindHello   kind = 0x01
	kindPing    kind = 0x02
	kindProve   kind = 0x03
	kindVerify  kind = 0x04
	kindInspect kind = 0x05
	kindSample  kind = 0x06
	kindBye     kind = 0x07

	kindReady    kind = 0x81
	kindPong     kind = 0x82
	kindStarted  kind = 0x83
	kindProgress kind = 0x84
	kindResult   kind = 0x85
	kindSamples  kind = 0x86
	kindError    kind = 0x87
	kindGone     kind = 0x88
)

const (
	protocolVersion = 1
	headerSize      = 16 // u32 body length, u8 kind, 3 zero bytes, u64 id

	// mebibyte is the unit of the limits below.
	mebibyte = 1 << 20

	// maxSignatureSize bounds what a scheme may call its signature, in bytes. The schemes known have 1,208 to 2,404.
	maxSignatureSize = 16 << 10
	// maxProofSize bounds a proof on the pipes, in bytes: four times the 524,288 that the network's containers carry.
	maxProofSize = 2 * mebibyte
	// maxStringSize bounds a name in a frame, in bytes; maxTextSize the text of a refusal.
	maxStringSize = 128
	maxTextSize   = 1024
	// maxKnown bounds the known answers of one hello.
	maxKnown = 32
)

// limits holds the longest body of each kind in bytes. A kind that is not listed does not exist.
var limits = map[kind]uint32{
	kindHello:   4 * mebibyte, // known proofs of about 200,000 bytes each
	kindPing:    64,
	kindProve:   64 * mebibyte, // 4,096 signatures of 2,404 bytes and 16 children of 2 MiB fit
	kindVerify:  4 * mebibyte,  // a proof and 65,536 keys
	kindInspect: 4 * mebibyte,
	kindSample:  64,
	kindBye:     0,

	kindReady:    8 << 10,
	kindPong:     64,
	kindStarted:  0,
	kindProgress: 64,
	kindResult:   8 * mebibyte, // a proof and 65,536 entries of 64 bytes
	kindSamples:  4 * mebibyte,
	kindError:    2 << 10,
	kindGone:     0,
}

func (k kind) fromChild() bool { return k&0x80 != 0 }

// String returns the name that the protocol document uses.
func (k kind) String() string {
	names := map[kind]string{
		kindHello: "hello", kindPing: "ping", kindProve: "prove", kindVerify: "verify", kindInspect: "inspect",
		kindSample: "sample", kindBye: "bye", kindReady: "ready", kindPong: "pong", kindStarted: "started",
		kindProgress: "progress", kindResult: "result", kindSamples: "samples", kindError: "error", kindGone: "gone",
	}
	if n, ok := names[k]; ok {
		return n
	}
	return fmt.Sprintf("kind_0x%02x", uint8(k))
}

type frame struct {
	kind kind
	id   uint64
	body []byte
	from *buffers // where body goes back to, may be nil
}

// release gives the body back for reuse: nobody may look at it, or at a view of it, any more. A frame that is never
// released is left to the garbage collector.
func (f frame) release() { f.from.give(f.body) }

// newBody returns a buffer to append a body of about size bytes to, with room for the header in front: a proof is
// copied into its frame once.
func newBody(size int) []byte { return make([]byte, headerSize, headerSize+size) }

// newBody is the same out of what is kept for reuse; the process takes it back when it is written.
func (b *buffers) newBody(size int) []byte { return b.take(headerSize + size)[:headerSize] }

// seal writes the header in front of a body that began with newBody. b is the whole frame then.
func seal(b []byte, k kind, id uint64) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-headerSize))
	b[4], b[5], b[6], b[7] = byte(k), 0, 0, 0
	binary.LittleEndian.PutUint64(b[8:], id)
}

// errFrame is the ground of every complaint about a frame.
var errFrame = errors.New("bad frame")

// readFrame reads one frame from the child's side (fromChild) or the parent's, into a buffer of pool where one is given.
// The length is checked against the limit of the kind before anything is allocated, and memory grows with the bytes that
// really come. An errFrame is a fault of the sender; io.EOF at a border of frames, io.ErrUnexpectedEOF inside one and
// other errors are those of r.
func readFrame(r io.Reader, fromChild bool, pool *buffers) (frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	size := binary.LittleEndian.Uint32(h[:4])
	f := frame{kind: kind(h[4]), id: binary.LittleEndian.Uint64(h[8:]), from: pool}
	limit, ok := limits[f.kind]
	if !ok || f.kind.fromChild() != fromChild {
		return frame{}, fmt.Errorf("%w: unexpected %s", errFrame, f.kind)
	}
	if h[5]|h[6]|h[7] != 0 {
		return frame{}, fmt.Errorf("%w: reserved bytes set in %s", errFrame, f.kind)
	}
	if size > limit {
		return frame{}, fmt.Errorf("%w: %s of %d bytes, limit %d", errFrame, f.kind, size, limit)
	}
	var err error
	f.body, err = readBody(r, int(size), pool)
	return f, err
}

// readChunk is how much readBody allocates ahead of the bytes, in bytes: one pipe buffer.
const readChunk = 64 << 10

func readBody(r io.Reader, size int, pool *buffers) ([]byte, error) {
	body := pool.take(min(size, readChunk))
	for len(body) < size {
		if len(body) == cap(body) {
			grown := make([]byte, len(body), min(size, 2*cap(body)))
			copy(grown, body)
			body = grown
		}
		n, err := r.Read(body[len(body):min(size, cap(body))])
		body = body[:len(body)+n]
		if len(body) < size && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}

// decoder takes fields off the front of a body. After the first fault every further call returns zero values; end
// reports it. Byte slices are views of the body.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errFrame, fmt.Sprintf(format, args...))
	}
	d.b = nil
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail("body ends %d bytes early", n-len(d.b))
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) u8() uint8 {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if v := d.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if v := d.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if v := d.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// count takes a u32 count of things of at least unit bytes each and checks it against what is left.
func (d *decoder) count(unit int) int {
	n := d.u32()
	if uint64(n)*uint64(unit) > uint64(len(d.b)) {
		d.fail("count %d of %d bytes each, %d bytes left", n, unit, len(d.b))
		return 0
	}
	return int(n)
}

// text takes a u16 length and that many bytes, at most limit.
func (d *decoder) text(limit int) string {
	n := int(d.u16())
	if n > limit {
		d.fail("text of %d bytes, limit %d", n, limit)
		return ""
	}
	return string(d.take(n))
}

// blob takes a u32 length and that many bytes, at most limit.
func (d *decoder) blob(limit int) []byte {
	n := d.count(1)
	if n > limit {
		d.fail("%d bytes, limit %d", n, limit)
		return nil
	}
	return d.take(n)
}

func (d *decoder) message() (m [MessageSize]byte) {
	copy(m[:], d.take(MessageSize))
	return m
}

// end reports the first fault, or bytes left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) != 0 {
		d.fail("%d bytes after the body", len(d.b))
	}
	return d.err
}

func appendText(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func appendBlob(b, v []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}
