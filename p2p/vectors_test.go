package p2p

import (
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	cryptopb "github.com/libp2p/go-libp2p/core/crypto/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"aggnode/wire/wiretest"
)

// hexBytes is 0x hex in JSON.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(strings.TrimPrefix(string(text), "0x"))
	*h = b

	return err
}

// codecVector is one networking_codec case of leanSpec, of the kinds that
// libp2p itself encodes.
type codecVector struct {
	RejectionReason string `json:"rejectionReason"`
	Codec           struct {
		Kind          string   `json:"kind"`
		Decoder       string   `json:"decoder"`
		RawBytes      hexBytes `json:"rawBytes"`
		KeyType       string   `json:"keyType"`
		PublicKey     hexBytes `json:"publicKey"`
		Subscriptions []struct {
			Subscribe bool   `json:"subscribe"`
			TopicID   string `json:"topicId"`
		} `json:"subscriptions"`
		Publish []struct {
			Topic     string   `json:"topic"`
			Data      hexBytes `json:"data"`
			FromPeer  hexBytes `json:"fromPeer"`
			Seqno     hexBytes `json:"seqno"`
			Signature hexBytes `json:"signature"`
			Key       hexBytes `json:"key"`
		} `json:"publish"`
		Control *struct {
			IHave     []controlVector `json:"ihave"`
			IWant     []controlVector `json:"iwant"`
			Graft     []controlVector `json:"graft"`
			Prune     []controlVector `json:"prune"`
			IDontWant []controlVector `json:"idontwant"`
		} `json:"control"`
	} `json:"codec"`
	Output struct {
		Encoded         hexBytes `json:"encoded"`
		ProtobufEncoded hexBytes `json:"protobufEncoded"`
		PeerID          string   `json:"peerId"`
	} `json:"output"`
}

type controlVector struct {
	TopicID    string     `json:"topicId"`
	MessageIDs []hexBytes `json:"messageIds"`
	Backoff    uint64     `json:"backoff"`
}

// codecVectors reads the networking_codec cases. They lie beside the repository;
// without them the test is not run, and fails where CI is set.
func codecVectors(t *testing.T) map[string]codecVector {
	t.Helper()
	dir := filepath.Join(wiretest.VectorsDir(t), "networking_codec")
	out := make(map[string]codecVector)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var cases map[string]json.RawMessage
		if err := json.Unmarshal(raw, &cases); err != nil {
			return err
		}
		for _, body := range cases {
			var kind struct {
				Codec struct{ Kind, Decoder string } `json:"codec"`
			}
			if err := json.Unmarshal(body, &kind); err != nil {
				return err
			}
			switch kind.Codec.Kind + "/" + kind.Codec.Decoder {
			case "gossipsub_rpc/", "peer_id/", "decode_failure/gossipsub_rpc":
				var v codecVector
				if err := json.Unmarshal(body, &v); err != nil {
					return err
				}
				out[filepath.Base(path)] = v
			}
		}

		return nil
	}))

	return out
}

// optional returns nil for what the specification leaves out of a frame.
func optional(s string) *string {
	if s == "" {
		return nil
	}

	return &s
}

func ids(raw []hexBytes) (out []string) {
	for _, id := range raw {
		out = append(out, string(id))
	}

	return out
}

// rpc returns the frame that a vector describes, in the library's types.
func (v codecVector) rpc() *pb.RPC {
	out := &pb.RPC{}
	for _, s := range v.Codec.Subscriptions {
		out.Subscriptions = append(out.Subscriptions, &pb.RPC_SubOpts{Subscribe: proto.Bool(s.Subscribe), Topicid: proto.String(s.TopicID)})
	}
	some := func(b hexBytes) []byte {
		if len(b) == 0 {
			return nil
		}

		return b
	}
	for _, m := range v.Codec.Publish {
		out.Publish = append(out.Publish, &pb.Message{
			Topic: optional(m.Topic), Data: some(m.Data), From: some(m.FromPeer), Seqno: some(m.Seqno),
			Signature: some(m.Signature), Key: some(m.Key),
		})
	}
	c := v.Codec.Control
	if c == nil {
		return out
	}
	control := &pb.ControlMessage{}
	for _, e := range c.IHave {
		control.Ihave = append(control.Ihave, &pb.ControlIHave{TopicID: optional(e.TopicID), MessageIDs: ids(e.MessageIDs)})
	}
	for _, e := range c.IWant {
		control.Iwant = append(control.Iwant, &pb.ControlIWant{MessageIDs: ids(e.MessageIDs)})
	}
	for _, e := range c.Graft {
		control.Graft = append(control.Graft, &pb.ControlGraft{TopicID: optional(e.TopicID)})
	}
	for _, e := range c.Prune {
		prune := &pb.ControlPrune{TopicID: optional(e.TopicID)}
		if e.Backoff != 0 {
			prune.Backoff = &e.Backoff
		}
		control.Prune = append(control.Prune, prune)
	}
	for _, e := range c.IDontWant {
		control.Idontwant = append(control.Idontwant, &pb.ControlIDontWant{MessageIDs: ids(e.MessageIDs)})
	}
	if proto.Size(control) > 0 {
		out.Control = control
	}

	return out
}

// TestLeanSpecCodecs runs the cases of the kinds that go-libp2p encodes for us:
// gossip frames both ways, frames that must be refused, and peer ids.
func TestLeanSpecCodecs(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for name, v := range codecVectors(t) {
		counts[v.Codec.Kind]++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch v.Codec.Kind {
			case "gossipsub_rpc":
				want := v.rpc()
				encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
				require.NoError(t, err)
				require.Equal(t, []byte(v.Output.Encoded), append([]byte{}, encoded...))
				got := new(pb.RPC)
				require.NoError(t, proto.Unmarshal(v.Output.Encoded, got))
				require.True(t, proto.Equal(want, got), "%v", got)
			case "decode_failure":
				require.Error(t, proto.Unmarshal(v.Codec.RawBytes, new(pb.RPC)), v.RejectionReason)
			case "peer_id":
				checkPeerID(t, v)
			}
		})
	}
	require.GreaterOrEqual(t, counts["gossipsub_rpc"], 26)
	require.GreaterOrEqual(t, counts["decode_failure"], 2)
	require.GreaterOrEqual(t, counts["peer_id"], 4)
}

// checkPeerID derives a peer id from a public key.
func checkPeerID(t *testing.T, v codecVector) {
	t.Helper()
	m := &cryptopb.PublicKey{}
	require.NoError(t, proto.Unmarshal(v.Output.ProtobufEncoded, m))
	require.Equal(t, []byte(v.Codec.PublicKey), m.GetData())
	require.Equal(t, v.Codec.KeyType, strings.ToLower(m.GetType().String()))
	pub, err := crypto.UnmarshalPublicKey(v.Output.ProtobufEncoded)
	require.NoError(t, err)
	marshalled, err := crypto.MarshalPublicKey(pub)
	require.NoError(t, err)
	require.Equal(t, []byte(v.Output.ProtobufEncoded), marshalled)
	id, err := peer.IDFromPublicKey(pub)
	require.NoError(t, err)
	require.Equal(t, v.Output.PeerID, id.String())
}
