package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

func testHeader() CaptureHeader {
	return CaptureHeader{
		Network: "12345678", Profile: "lean-pq", Scheme: "keccak",
		Genesis: time.Unix(1_790_000_000, 0), SlotDuration: 4 * time.Second, Start: time.Unix(1_790_000_004, 7),
	}
}

func testRecords() []CaptureRecord {
	return []CaptureRecord{
		{0, "/leanconsensus/12345678/block/ssz_snappy", []byte{}},
		{time.Millisecond, "", []byte("message")},
		{time.Millisecond, "topic", bytes.Repeat([]byte{7}, 3*captureChunk)},
	}
}

func encode(t testing.TB, records ...CaptureRecord) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewCaptureWriter(&b, testHeader())
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	return b.Bytes()
}

// decode reads a whole capture.
func decode(b []byte) (CaptureHeader, []CaptureRecord, error) {
	r, err := NewCaptureReader(bytes.NewReader(b))
	if err != nil {
		return CaptureHeader{}, nil, err
	}
	var records []CaptureRecord
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header(), records, nil
		}
		if err != nil {
			return r.Header(), records, err
		}
		records = append(records, record)
	}
}

func TestCapturesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, records := range [][]CaptureRecord{nil, testRecords()} {
		header, got, err := decode(encode(t, records...))
		require.NoError(t, err)
		require.Equal(t, testHeader(), header)
		require.Equal(t, records, got)
	}
}

func TestACaptureThatIsCutIsWholeOnlyAtTheBordersOfRecords(t *testing.T) {
	t.Parallel()
	records := testRecords()[:2]
	borders := map[int]int{} // length -> records
	for n := range len(records) + 1 {
		borders[len(encode(t, records[:n]...))] = n
	}
	whole := encode(t, records...)
	for n := range len(whole) + 1 {
		_, got, err := decode(whole[:n])
		if count, ok := borders[n]; ok {
			require.NoError(t, err, n)
			require.Len(t, got, count)
			continue
		}
		require.ErrorIs(t, err, ErrCapture, n)
	}
}

func TestADamagedCaptureIsRefused(t *testing.T) {
	t.Parallel()
	header := len(encode(t))
	one := encode(t, CaptureRecord{Offset: 5, Topic: "topic", Message: []byte("message")})
	resum := func(b []byte) { // makes the sum right again
		body := b[header+4 : len(b)-4]
		binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(body, castagnoli))
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"another magic":          func(b []byte) []byte { b[0]++; return b },
		"another version":        func(b []byte) []byte { b[7]++; return b },
		"a huge header":          func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 1<<31); return b },
		"an empty header":        func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 0); return b },
		"a shorter header":       func(b []byte) []byte { b[8]--; return b },
		"a longer header":        func(b []byte) []byte { b[8]++; return b },
		"genesis out of time":    func(b []byte) []byte { b[19] = 0xff; return b },
		"a long name":            func(b []byte) []byte { b[33] = 0xff; return b },
		"a short record":         func(b []byte) []byte { binary.LittleEndian.PutUint32(b[header:], recordHead-1); return b },
		"a huge record":          func(b []byte) []byte { binary.LittleEndian.PutUint32(b[header:], 1<<31); return b },
		"a record that is not":   func(b []byte) []byte { binary.LittleEndian.PutUint32(b[header:], maxRecord); return b },
		"another message":        func(b []byte) []byte { b[len(b)-5]++; return b },
		"another sum":            func(b []byte) []byte { b[len(b)-1]++; return b },
		"an offset out of time":  func(b []byte) []byte { b[header+11] = 0x80; resum(b); return b },
		"a topic past the end":   func(b []byte) []byte { b[header+12] = 0xf0; resum(b); return b },
		"a topic that is longer": func(b []byte) []byte { b[header+13] = 2; resum(b); return b },
	} {
		_, _, err := decode(damage(bytes.Clone(one)))
		require.ErrorIs(t, err, ErrCapture, name)
	}
	back := append(bytes.Clone(one), encode(t, CaptureRecord{Offset: 4})[header:]...)
	_, got, err := decode(back)
	require.ErrorIs(t, err, ErrCapture)
	require.Len(t, got, 1, "what came before the damage was read")
}

func TestTheReaderHandsOnErrorsOfItsSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	_, err := NewCaptureReader(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrCapture)
	whole := encode(t, testRecords()...)
	r, err := NewCaptureReader(io.MultiReader(bytes.NewReader(whole[:len(whole)-1]), iotest.ErrReader(broken)))
	require.NoError(t, err)
	for err == nil {
		_, err = r.Next()
	}
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrCapture)
}

func TestTheWriterRefusesWhatTheReaderWould(t *testing.T) {
	t.Parallel()
	long := testHeader()
	long.Network = string(make([]byte, maxCaptureName+1))
	_, err := NewCaptureWriter(io.Discard, long)
	require.Error(t, err)
	w, err := NewCaptureWriter(io.Discard, testHeader())
	require.NoError(t, err)
	require.NoError(t, w.Write(CaptureRecord{Offset: 2}))
	for name, r := range map[string]CaptureRecord{
		"time goes back":   {Offset: 1},
		"a long topic":     {Offset: 2, Topic: string(make([]byte, maxCaptureTopic+1))},
		"a long message":   {Offset: 2, Message: make([]byte, wire.MaxMessageSize+1)},
		"time before zero": {Offset: -1},
	} {
		require.Error(t, w.Write(r), name)
	}
	w.w = iotest.TruncateWriter(failing{}, 0)
	require.NoError(t, w.Write(CaptureRecord{Offset: 2}))
	w.w = failing{}
	require.ErrorIs(t, w.Write(CaptureRecord{Offset: 2}), io.ErrShortWrite)
	_, err = NewCaptureWriter(failing{}, testHeader())
	require.ErrorIs(t, err, io.ErrShortWrite)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func FuzzCaptureReader(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(f))
	f.Add(encode(f, testRecords()[:2]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		header, records, err := decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCapture)
			return
		}
		var again bytes.Buffer
		w, err := NewCaptureWriter(&again, header)
		require.NoError(t, err)
		for _, r := range records {
			require.NoError(t, w.Write(r))
		}
		require.Equal(t, b, again.Bytes(), "one encoding only")
	})
}
