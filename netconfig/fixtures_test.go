package netconfig

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire/wiretest"
)

// enrCase is a case of the kinds enr, peer_id and decode_failure/enr of the
// public fixtures.
type enrCase struct {
	Codec struct {
		Kind      string       `json:"kind"`
		Decoder   string       `json:"decoder"`
		RawBytes  wiretest.Hex `json:"rawBytes"`
		ENR       string       `json:"enrString"`
		KeyType   string       `json:"keyType"`
		PublicKey wiretest.Hex `json:"publicKey"`
	} `json:"codec"`
	Output struct {
		RLP            wiretest.Hex `json:"rlp"`
		Seq            uint64       `json:"seq"`
		IdentityScheme string       `json:"identityScheme"`
		NodeID         wiretest.Hex `json:"nodeId"`
		PublicKey      wiretest.Hex `json:"publicKey"`
		IP4            string       `json:"ip4"`
		IP6            string       `json:"ip6"`
		UDPPort        uint16       `json:"udpPort"`
		QUICPort       uint16       `json:"quicPort"`
		Multiaddr      string       `json:"multiaddr"`
		Eth2Data       *struct {
			ForkDigest      wiretest.Hex `json:"forkDigest"`
			NextForkVersion wiretest.Hex `json:"nextForkVersion"`
		} `json:"eth2Data"`
		AttestationSubnets []int        `json:"attestationSubnets"`
		IsAggregator       bool         `json:"isAggregator"`
		SignatureValid     bool         `json:"signatureValid"`
		IsValid            bool         `json:"isValid"`
		ProtobufEncoded    wiretest.Hex `json:"protobufEncoded"`
		PeerID             string       `json:"peerId"`
	} `json:"output"`
}

// TestNodeRecordFixtures runs the cases of the networking_codec family that are
// about node records and peer ids.
func TestNodeRecordFixtures(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	for _, f := range wiretest.Family(t, "networking_codec") {
		var kind struct {
			Codec struct{ Kind, Decoder string } `json:"codec"`
		}
		f.Decode(t, &kind)
		name := kind.Codec.Kind + kind.Codec.Decoder
		run, ok := map[string]func(*testing.T, *enrCase){
			"enr":               runENR,
			"peer_id":           runPeerID,
			"decode_failureenr": runBadENR,
		}[name]
		if !ok {
			continue
		}
		ran[name]++
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			var c enrCase
			f.Decode(t, &c)
			run(t, &c)
		})
	}
	require.Equal(t, map[string]int{"enr": 8, "peer_id": 4, "decode_failureenr": 3}, ran)
}

func runENR(t *testing.T, c *enrCase) {
	e, err := DecodeENR(c.Codec.ENR)
	require.NoError(t, err)
	require.True(t, c.Output.IsValid)
	require.Equal(t, []byte(c.Output.RLP), e.RLP())
	require.Equal(t, c.Codec.ENR, e.String())
	again, err := DecodeENRBytes(c.Output.RLP)
	require.NoError(t, err)
	require.Equal(t, e, again)
	require.Equal(t, c.Output.Seq, e.Seq())
	id, _ := e.Value(keyID)
	require.Equal(t, c.Output.IdentityScheme, string(id))
	require.Equal(t, fmt.Sprintf("%064x", []byte(c.Output.NodeID)), hexOf(e.NodeID()))
	key := e.PublicKey()
	require.Equal(t, []byte(c.Output.PublicKey), key[:])
	require.Equal(t, c.Output.SignatureValid, e.VerifySignature())
	require.Equal(t, c.Output.IsAggregator, e.IsAggregator())
	if c.Output.IP4 != "" {
		ip, ok := e.IP4()
		require.True(t, ok)
		require.Equal(t, c.Output.IP4, ip.String())
	}
	if c.Output.UDPPort != 0 {
		port, ok := e.Port(keyUDP)
		require.True(t, ok)
		require.Equal(t, c.Output.UDPPort, port)
	}
	if c.Output.QUICPort != 0 {
		port, ok := e.Port(keyQUIC)
		require.True(t, ok)
		require.Equal(t, c.Output.QUICPort, port)
	}
	if c.Output.Multiaddr != "" {
		addr, ok := e.QUIC()
		require.True(t, ok)
		n := Node{PeerID: e.PeerID(), QUIC: addr}
		require.Equal(t, c.Output.Multiaddr+"/p2p/"+e.PeerID(), n.Multiaddr())
		parsed, err := ParseNode(n.Multiaddr())
		require.NoError(t, err)
		require.Equal(t, n, parsed)
	}
	if c.Output.Eth2Data != nil {
		v, _ := e.Value("eth2")
		require.Len(t, v, 16)
		require.Equal(t, []byte(c.Output.Eth2Data.ForkDigest), v[:4])
		require.Equal(t, []byte(c.Output.Eth2Data.NextForkVersion), v[4:8])
	}
	if c.Output.AttestationSubnets != nil {
		v, _ := e.Value("attnets")
		require.Len(t, v, 8)
		subnets := []int{}
		for i := range 64 {
			if v[i/8]>>(i%8)&1 == 1 {
				subnets = append(subnets, i)
			}
		}
		require.Equal(t, c.Output.AttestationSubnets, subnets)
	}
}

func runPeerID(t *testing.T, c *enrCase) {
	if c.Codec.KeyType == "secp256k1" {
		require.Equal(t, c.Output.PeerID, PeerIDOf([33]byte(c.Codec.PublicKey)))
	}
	// The other key types appear in multiaddrs of other people's nodes.
	require.NoError(t, checkPeerID(c.Output.PeerID))
	b, err := base58Decode(c.Output.PeerID)
	require.NoError(t, err)
	require.Equal(t, c.Output.PeerID, base58Encode(b))
	if b[0] == multihashIdentity {
		require.Equal(t, []byte(c.Output.ProtobufEncoded), b[2:])
	}
}

func runBadENR(t *testing.T, c *enrCase) {
	_, err := DecodeENRBytes(c.Codec.RawBytes)
	require.Error(t, err)
}

// hexOf returns the digits of a 32-byte value.
func hexOf(b [32]byte) string { return hex.EncodeToString(b[:]) }
