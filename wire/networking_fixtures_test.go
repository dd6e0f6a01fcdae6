package wire_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"

	"aggnode/wire"
	"aggnode/wire/wiretest"
)

// codecCase is the content of a file of the family networking_codec.
type codecCase struct {
	Codec struct {
		Kind                string       `json:"kind"`
		Decoder             string       `json:"decoder"`
		RawBytes            wiretest.Hex `json:"rawBytes"`
		Topic               wiretest.Hex `json:"topic"`
		Data                wiretest.Hex `json:"data"`
		Domain              wiretest.Hex `json:"domain"`
		TopicKind           string       `json:"topicKind"`
		NetworkName         string       `json:"networkName"`
		ExpectedNetworkName *string      `json:"expectedNetworkName"`
		SubnetID            uint64       `json:"subnetId"`
		SSZData             wiretest.Hex `json:"sszData"`
		ResponseCode        uint8        `json:"responseCode"`
		Chunks              []codecChunk `json:"chunks"`
		Value               uint64       `json:"value"`
	} `json:"codec"`
	Output struct {
		MessageID   wiretest.Hex `json:"messageId"`
		TopicString string       `json:"topicString"`
		ForkValid   bool         `json:"forkValid"`
		Encoded     wiretest.Hex `json:"encoded"`
		Compressed  wiretest.Hex `json:"compressed"`
		Framed      wiretest.Hex `json:"framed"`
	} `json:"output"`
}

// codecChunk is one chunk of a response stream.
type codecChunk struct {
	ResponseCode uint8        `json:"responseCode"`
	SSZData      wiretest.Hex `json:"sszData"`
}

// codecKinds has a row for each kind of case that this package runs.
var codecKinds = map[string]func(t *testing.T, c *codecCase){
	"gossip_message_id":       runMessageID,
	"gossip_topic":            runTopic,
	"reqresp_request":         runRequest,
	"reqresp_response":        runResponse,
	"reqresp_response_stream": runResponseStream,
	"snappy_block":            runSnappyBlock,
	"snappy_frame":            runSnappyFrame,
	"varint":                  runVarint,

	"decode_failure/reqresp_request": runBadRequest,
	"decode_failure/snappy_frame":    runBadFrame,
	"decode_failure/varint":          runBadRequest,
}

// codecElsewhere names the package whose tests run the other kinds.
var codecElsewhere = map[string]string{
	"enr":                          "netconfig",
	"peer_id":                      "netconfig",
	"decode_failure/enr":           "netconfig",
	"gossipsub_rpc":                "p2p",
	"decode_failure/gossipsub_rpc": "p2p",
}

// TestNetworkingFixtures runs every file of the networking_codec family that is
// about this package, and fails on a kind that nobody runs.
func TestNetworkingFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range wiretest.Family(t, "networking_codec") {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			var kind struct {
				Codec struct{ Kind, Decoder string } `json:"codec"`
			}
			f.Decode(t, &kind)
			name := kind.Codec.Kind
			if kind.Codec.Decoder != "" {
				name += "/" + kind.Codec.Decoder
			}
			if codecElsewhere[name] != "" {
				return
			}
			run, ok := codecKinds[name]
			require.True(t, ok, "nobody runs the kind %s", name)
			var c codecCase
			f.Decode(t, &c)
			run(t, &c)
		})
	}
}

func runMessageID(t *testing.T, c *codecCase) {
	id := wire.MessageIDOf([4]byte(c.Codec.Domain), string(c.Codec.Topic), c.Codec.Data)
	require.Equal(t, []byte(c.Output.MessageID), id[:])
	if c.Codec.Domain[0] == 1 {
		// The same through the front door.
		id = wire.MessageID(string(c.Codec.Topic), wire.Compress(nil, c.Codec.Data))
		require.Equal(t, []byte(c.Output.MessageID), id[:])
	} else if _, err := wire.Decompress(c.Codec.Data, wire.MaxPayloadSize); err != nil {
		id = wire.MessageID(string(c.Codec.Topic), c.Codec.Data)
		require.Equal(t, []byte(c.Output.MessageID), id[:])
	}
}

func runTopic(t *testing.T, c *codecCase) {
	kinds := map[string]wire.TopicKind{
		"block": wire.TopicBlock, "aggregation": wire.TopicAggregation, "attestation": wire.TopicAttestation,
	}
	topic := wire.Topic{Kind: kinds[c.Codec.TopicKind], Subnet: wire.SubnetID(c.Codec.SubnetID)}
	require.Equal(t, c.Output.TopicString, topic.Name(c.Codec.NetworkName))
	got, err := wire.ParseTopic(c.Codec.NetworkName, c.Output.TopicString)
	require.NoError(t, err)
	require.Equal(t, topic, got)
	if c.Codec.ExpectedNetworkName != nil {
		_, err := wire.ParseTopic(*c.Codec.ExpectedNetworkName, c.Output.TopicString)
		require.Equal(t, c.Output.ForkValid, err == nil)
	}
}

func runRequest(t *testing.T, c *codecCase) {
	r := bytes.NewReader(c.Output.Encoded)
	got, err := wire.ReadRequest(r, wire.MaxPayloadSize)
	require.NoError(t, err)
	require.Zero(t, r.Len())
	require.True(t, bytes.Equal(c.Codec.SSZData, got))

	var buf bytes.Buffer
	require.NoError(t, wire.WriteRequest(&buf, c.Codec.SSZData))
	got, err = wire.ReadRequest(&buf, wire.MaxPayloadSize)
	require.NoError(t, err)
	require.True(t, bytes.Equal(c.Codec.SSZData, got))
}

func runResponse(t *testing.T, c *codecCase) {
	runChunks(t, c.Output.Encoded, codecChunk{ResponseCode: c.Codec.ResponseCode, SSZData: c.Codec.SSZData})
}

func runResponseStream(t *testing.T, c *codecCase) {
	runChunks(t, c.Output.Encoded, c.Codec.Chunks...)
}

// runChunks reads the chunks from the stream, and again from one of our own.
func runChunks(t *testing.T, stream []byte, chunks ...codecChunk) {
	t.Helper()
	var ours bytes.Buffer
	for _, c := range chunks {
		require.NoError(t, wire.WriteChunk(&ours, wire.ResponseCode(c.ResponseCode), c.SSZData))
	}
	for _, r := range []io.Reader{bytes.NewReader(stream), &ours} {
		for _, c := range chunks {
			code, content, err := wire.ReadChunk(r, wire.MaxPayloadSize)
			require.NoError(t, err)
			require.Equal(t, wire.ResponseCode(c.ResponseCode), code)
			require.True(t, bytes.Equal(c.SSZData, content))
		}
		_, _, err := wire.ReadChunk(r, wire.MaxPayloadSize)
		require.ErrorIs(t, err, io.EOF)
	}
}

func runSnappyBlock(t *testing.T, c *codecCase) {
	for _, message := range [][]byte{c.Output.Compressed, wire.Compress(nil, c.Codec.Data)} {
		got, err := wire.Decompress(message, wire.MaxPayloadSize)
		require.NoError(t, err)
		require.True(t, bytes.Equal(c.Codec.Data, got))
	}
}

func runSnappyFrame(t *testing.T, c *codecCase) {
	for _, stream := range [][]byte{c.Output.Framed, wire.AppendFrames(nil, c.Codec.Data)} {
		r := bytes.NewReader(stream)
		got, err := wire.ReadFrames(r, len(c.Codec.Data))
		require.NoError(t, err)
		require.Zero(t, r.Len())
		require.True(t, bytes.Equal(c.Codec.Data, got))

		// The reader of the library agrees.
		got, err = io.ReadAll(snappy.NewReader(bytes.NewReader(stream)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(c.Codec.Data, got))
	}
}

func runVarint(t *testing.T, c *codecCase) {
	require.Equal(t, []byte(c.Output.Encoded), binary.AppendUvarint(nil, c.Codec.Value))
	_, err := wire.ReadRequest(bytes.NewReader(append(append([]byte(nil), c.Output.Encoded...), "no frame!!"...)), wire.MaxPayloadSize)
	requireReason(t, wire.ReasonMalformed, err)
	if c.Codec.Value > wire.MaxPayloadSize {
		require.ErrorContains(t, err, "announces")
	} else {
		require.ErrorContains(t, err, "stream identifier")
	}
}

func runBadRequest(t *testing.T, c *codecCase) {
	_, err := wire.ReadRequest(bytes.NewReader(c.Codec.RawBytes), wire.MaxPayloadSize)
	requireReason(t, wire.ReasonMalformed, err)
}

func runBadFrame(t *testing.T, c *codecCase) {
	for _, n := range []int{0, 1, 1 << 20} {
		r := bytes.NewReader(c.Codec.RawBytes)
		_, err := wire.ReadFrames(r, n)
		if n == 0 && err == nil {
			// Nothing more was asked for: the bad chunk is not ours to read.
			require.Equal(t, 4, r.Len())

			continue
		}
		requireReason(t, wire.ReasonMalformed, err)
	}
}
