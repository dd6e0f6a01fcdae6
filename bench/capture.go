package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"aggnode/wire"
)

// A capture is a file of gossip messages with the times at which they came. All integers are little-endian.
//
//	magic "aggncap" | version u8 = 1 | header length u32 | header | record...
//	header: genesis u64 (Unix seconds) | slot length u32 (ms) | start i64 (Unix ns) | network | profile | scheme
//	record: length u32 of what follows but the sum | offset u64 (ns since start) | topic | message | sum u32
//
// Names and topics are a u16 length and that many bytes. message is what gossip carried, compressed, and ends the record.
// sum is CRC-32C of the record without its length: a file that a crash cut short is told apart from a whole one.
// A capture ends at the border of a record. Offsets never go back.
const (
	captureMagic   = "aggncap"
	captureVersion = 1

	maxCaptureHeader = 1024 // bytes; three names and 20 bytes of numbers
	maxCaptureName   = 128  // bytes of a network, profile or scheme name
	maxCaptureTopic  = 256  // bytes of a topic name; those of wire.Topic have about 50
	recordHead       = 8 + 2
	maxRecord        = recordHead + maxCaptureTopic + wire.MaxMessageSize

	// captureChunk is how much the reader allocates ahead of the bytes, in bytes: most messages fit, and a length
	// that is a lie costs no more.
	captureChunk = 64 << 10
)

// ErrCapture says that bytes are no capture, or a damaged one.
var ErrCapture = errors.New("bad capture")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CaptureHeader says which network a capture is of.
type CaptureHeader struct {
	Network      string // network part of the topic names
	Profile      string // of package wire
	Scheme       string
	Genesis      time.Time     // whole seconds
	SlotDuration time.Duration // whole milliseconds
	Start        time.Time     // offset zero
}

// CaptureRecord is one message. Topic and Message are not written by anybody once the record is handed over.
type CaptureRecord struct {
	Offset  time.Duration // since CaptureHeader.Start, not negative
	Topic   string        // full topic name
	Message []byte        // as gossip carried it, compressed; at most wire.MaxMessageSize bytes
}

// CaptureWriter writes a capture. Not safe for concurrent use.
type CaptureWriter struct {
	w    io.Writer
	buf  []byte
	last time.Duration
}

// NewCaptureWriter writes the header. Each record is one call of w.Write, so that a file has whole records whenever the
// process ends.
func NewCaptureWriter(w io.Writer, h CaptureHeader) (*CaptureWriter, error) {
	body := binary.LittleEndian.AppendUint64(nil, uint64(h.Genesis.Unix()))
	body = binary.LittleEndian.AppendUint32(body, uint32(h.SlotDuration.Milliseconds()))
	body = binary.LittleEndian.AppendUint64(body, uint64(h.Start.UnixNano()))
	for _, name := range []string{h.Network, h.Profile, h.Scheme} {
		if len(name) > maxCaptureName {
			return nil, fmt.Errorf("write capture: a name of %d bytes, at most %d allowed", len(name), maxCaptureName)
		}
		body = appendName(body, name)
	}
	b := append([]byte(captureMagic), captureVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	if _, err := w.Write(append(b, body...)); err != nil {
		return nil, fmt.Errorf("write capture: %w", err)
	}
	return &CaptureWriter{w: w}, nil
}

func appendName(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// Write appends a record. It refuses one that a reader would refuse.
func (c *CaptureWriter) Write(r CaptureRecord) error {
	switch {
	case r.Offset < c.last:
		return fmt.Errorf("write capture: offset %s after %s", r.Offset, c.last)
	case len(r.Topic) > maxCaptureTopic:
		return fmt.Errorf("write capture: a topic of %d bytes, at most %d allowed", len(r.Topic), maxCaptureTopic)
	case len(r.Message) > wire.MaxMessageSize:
		return fmt.Errorf("write capture: a message of %d bytes, at most %d allowed", len(r.Message), wire.MaxMessageSize)
	}
	b := binary.LittleEndian.AppendUint32(c.buf[:0], uint32(recordHead+len(r.Topic)+len(r.Message)))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Offset))
	b = appendName(b, r.Topic)
	b = append(b, r.Message...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[4:], castagnoli))
	c.buf, c.last = b, r.Offset
	if _, err := c.w.Write(b); err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	return nil
}

// CaptureReader reads a capture. Not safe for concurrent use.
type CaptureReader struct {
	r      *bufio.Reader
	header CaptureHeader
	last   time.Duration
}

// NewCaptureReader reads the header. The bytes are not trusted: memory grows with what is really there and never by a
// length in the file. Errors wrap ErrCapture, or are those of r.
func NewCaptureReader(r io.Reader) (*CaptureReader, error) {
	c := &CaptureReader{r: bufio.NewReader(r)}
	var head [len(captureMagic) + 1 + 4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, cut("header", err)
	}
	if string(head[:len(captureMagic)]) != captureMagic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrCapture, captureMagic)
	}
	if v := head[len(captureMagic)]; v != captureVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrCapture, v, captureVersion)
	}
	size := binary.LittleEndian.Uint32(head[len(captureMagic)+1:])
	if size > maxCaptureHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes, at most %d allowed", ErrCapture, size, maxCaptureHeader)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.r, body); err != nil {
		return nil, cut("header", err)
	}
	var err error
	c.header, err = decodeCaptureHeader(body)
	return c, err
}

// Header returns what the file says of itself.
func (c *CaptureReader) Header() CaptureHeader { return c.header }

func decodeCaptureHeader(b []byte) (h CaptureHeader, err error) {
	const numbers = 8 + 4 + 8
	if len(b) < numbers {
		return h, fmt.Errorf("%w: a header of %d bytes", ErrCapture, len(b))
	}
	genesis := binary.LittleEndian.Uint64(b)
	if genesis > math.MaxInt64/uint64(time.Second) {
		return h, fmt.Errorf("%w: genesis %d", ErrCapture, genesis)
	}
	h.Genesis = time.Unix(int64(genesis), 0)
	h.SlotDuration = time.Duration(binary.LittleEndian.Uint32(b[8:])) * time.Millisecond
	h.Start = time.Unix(0, int64(binary.LittleEndian.Uint64(b[12:])))
	b = b[numbers:]
	for _, to := range []*string{&h.Network, &h.Profile, &h.Scheme} {
		if *to, b, err = cutName(b, maxCaptureName); err != nil {
			return h, err
		}
	}
	if len(b) != 0 {
		return h, fmt.Errorf("%w: %d bytes after the header", ErrCapture, len(b))
	}
	return h, nil
}

// cutName takes a name of at most limit bytes off the front of b.
func cutName(b []byte, limit int) (name string, rest []byte, err error) {
	if len(b) < 2 {
		return "", nil, fmt.Errorf("%w: a name is cut short", ErrCapture)
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; n > limit || n > len(b) {
		return "", nil, fmt.Errorf("%w: a name of %d bytes in %d, at most %d allowed", ErrCapture, n, len(b), limit)
	}
	return string(b[:n]), b[n:], nil
}

// Next returns the next record, io.EOF after the last. A file that ends inside a record is damaged.
func (c *CaptureReader) Next() (CaptureRecord, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.r, length[:]); errors.Is(err, io.EOF) {
		return CaptureRecord{}, io.EOF
	} else if err != nil {
		return CaptureRecord{}, cut("record", err)
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size < recordHead || size > maxRecord {
		return CaptureRecord{}, fmt.Errorf("%w: a record of %d bytes, must be %d to %d", ErrCapture, size, recordHead, maxRecord)
	}
	body, err := readGrowing(c.r, int(size)+4)
	if err != nil {
		return CaptureRecord{}, cut("record", err)
	}
	body, sum := body[:size], binary.LittleEndian.Uint32(body[size:])
	if crc32.Checksum(body, castagnoli) != sum {
		return CaptureRecord{}, fmt.Errorf("%w: the sum of a record is wrong", ErrCapture)
	}
	offset := binary.LittleEndian.Uint64(body)
	if offset > math.MaxInt64 || time.Duration(offset) < c.last {
		return CaptureRecord{}, fmt.Errorf("%w: offset %d ns after %d", ErrCapture, offset, c.last)
	}
	r := CaptureRecord{Offset: time.Duration(offset)}
	if r.Topic, r.Message, err = cutName(body[8:], maxCaptureTopic); err != nil {
		return CaptureRecord{}, err
	}
	if len(r.Message) > wire.MaxMessageSize {
		return CaptureRecord{}, fmt.Errorf("%w: a message of %d bytes", ErrCapture, len(r.Message))
	}
	c.last = r.Offset
	return r, nil
}

// readGrowing reads n bytes into memory that grows as they come.
func readGrowing(r io.Reader, n int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(n, captureChunk))
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// cut turns the end of a file in the wrong place into damage and leaves other errors as they are.
func cut(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s is cut short", ErrCapture, what)
	}
	return fmt.Errorf("read %s of capture: %w", what, err)
}
