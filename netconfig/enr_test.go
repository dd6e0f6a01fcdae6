package netconfig

import (
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exampleENR is the record of EIP-778, signed with exampleKey.
const exampleENR = "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8"

var exampleKey = [32]byte(must(hex.DecodeString("b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291")))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}

	return v
}

func TestANewRecordReadsBackAndVerifies(t *testing.T) {
	t.Parallel()
	tests := map[string]ENRFields{
		"an IPv4 aggregator": {Seq: 1, IP: netip.MustParseAddr("127.0.0.1"), QUICPort: 9001, IsAggregator: true},
		"an IPv4 node":       {Seq: 7, IP: netip.MustParseAddr("10.1.2.3"), QUICPort: 1},
		"an IPv6 node":       {Seq: 1 << 40, IP: netip.MustParseAddr("2001:db8::1"), QUICPort: 65535},
		"a mapped address":   {IP: netip.MustParseAddr("::ffff:10.1.2.3"), QUICPort: 128},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := NewENR(exampleKey, f)
			require.NoError(t, err)
			require.True(t, e.VerifySignature())
			back, err := DecodeENR(e.String())
			require.NoError(t, err)
			require.Equal(t, e, back)
			require.Equal(t, f.Seq, back.Seq())
			require.Equal(t, f.IsAggregator, back.IsAggregator())
			addr, ok := back.QUIC()
			require.True(t, ok)
			require.Equal(t, netip.AddrPortFrom(f.IP.Unmap(), f.QUICPort), addr)
			id, err := PeerIDOfKey(exampleKey)
			require.NoError(t, err)
			require.Equal(t, id, back.PeerID())
			again, err := NewENR(exampleKey, f)
			require.NoError(t, err)
			require.Equal(t, e, again, "the signature is deterministic")
		})
	}
}

func TestTheSignatureIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	e := must(DecodeENR(exampleENR))
	require.Equal(t, "a448f24c6d18e575453db13171562b71999873db5b286df957af199ec94617f7", hexOf(e.NodeID()))
	ours := &ENR{seq: e.seq, pairs: e.pairs, publicKey: e.publicKey}
	ours.sign(must(privateKey(exampleKey)))
	require.Equal(t, exampleENR, ours.String())
}

func TestAnAlteredRecordDoesNotVerify(t *testing.T) {
	t.Parallel()
	b := must(DecodeENR(exampleENR)).RLP()
	for i := range b {
		c := append([]byte(nil), b...)
		c[i] ^= 1
		e, err := DecodeENRBytes(c)
		if err == nil {
			require.False(t, e.VerifySignature(), "byte %d", i)
		}
	}
}

func TestNewENRRefuses(t *testing.T) {
	t.Parallel()
	ok := ENRFields{IP: netip.MustParseAddr("127.0.0.1"), QUICPort: 9000}
	_, err := NewENR([32]byte{}, ok)
	require.ErrorContains(t, err, "not a secp256k1 private key")
	order := [32]byte(must(hex.DecodeString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")))
	_, err = NewENR(order, ok)
	require.ErrorContains(t, err, "not a secp256k1 private key")
	_, err = NewENR(exampleKey, ENRFields{IP: ok.IP})
	require.ErrorContains(t, err, "needs an address and a port")
	_, err = NewENR(exampleKey, ENRFields{QUICPort: 1})
	require.ErrorContains(t, err, "needs an address and a port")
}

func TestDecodeENRRefuses(t *testing.T) {
	t.Parallel()
	good := must(DecodeENR(exampleENR))
	build := func(edit func(*ENR)) string {
		e := *good
		e.pairs = append([]enrPair(nil), good.pairs...)
		edit(&e)

		return e.String()
	}
	list := func(items ...[]byte) string {
		var b []byte
		for _, i := range items {
			b = append(b, i...)
		}

		return enrPrefix + base64.RawURLEncoding.EncodeToString(rlpList(b))
	}
	signature := appendRLPString(nil, make([]byte, 64))
	tests := map[string]struct{ text, want string }{
		"no prefix":            {strings.TrimPrefix(exampleENR, "enr:"), "no \"enr:\""},
		"padding":              {exampleENR + "=", "illegal base64"},
		"not base64":           {"enr:*", "illegal base64"},
		"spare bits":           {exampleENR[:len(exampleENR)-1] + "9", ""},
		"nothing":              {"enr:", "canonical RLP"},
		"a string":             {"enr:" + base64.RawURLEncoding.EncodeToString([]byte{0x81, 0xff}), "not one list"},
		"bytes behind":         {"enr:" + base64.RawURLEncoding.EncodeToString(append(good.RLP(), 0)), "not one list"},
		"an empty list":        {list(), "canonical RLP"},
		"a short signature":    {list(appendRLPString(nil, make([]byte, 63))), "signature of 63 bytes"},
		"a list as signature":  {list(rlpList(make([]byte, 64))), "list inside"},
		"no sequence number":   {list(signature), "canonical RLP"},
		"a padded number":      {list(signature, appendRLPString(nil, []byte{0, 1})), "canonical RLP"},
		"a huge number":        {list(signature, appendRLPString(nil, make([]byte, 9))), "canonical RLP"},
		"a key without value":  {list(signature, []byte{1}, appendRLPString(nil, []byte("id"))), "canonical RLP"},
		"a list as value":      {list(signature, []byte{1}, appendRLPString(nil, []byte("id")), rlpList(nil)), "list inside"},
		"keys out of order":    {build(func(e *ENR) { e.pairs[0], e.pairs[1] = e.pairs[1], e.pairs[0] }), `key "id" after "ip"`},
		"the same key twice":   {build(func(e *ENR) { e.pairs[1] = e.pairs[0] }), `key "id" after "id"`},
		"another scheme":       {build(func(e *ENR) { e.pairs[0].value = []byte("v5") }), "identity scheme"},
		"no public key":        {build(func(e *ENR) { e.pairs = e.pairs[:2] }), "public key of 0 bytes"},
		"a point off curve":    {build(func(e *ENR) { e.pairs[2].value = append([]byte{2}, make([]byte, 32)...) }), "public key"},
		"more than 300 bytes":  {build(func(e *ENR) { e.add("z", make([]byte, 200)) }), "more than 300"},
		"a very long text":     {enrPrefix + strings.Repeat("A", 1<<20), "more than 300"},
		"a longer length form": {enrPrefix + base64.RawURLEncoding.EncodeToString([]byte{0xf8, 1, 1}), "canonical RLP"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeENR(tt.text)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "decode node record")
		})
	}
}

func TestPortsOfARecord(t *testing.T) {
	t.Parallel()
	record := func(pairs ...enrPair) *ENR { return &ENR{pairs: pairs} }
	ip := enrPair{"ip", []byte{1, 2, 3, 4}}
	tests := map[string]struct {
		e    *ENR
		want string
	}{
		"quic goes before udp":    {record(ip, enrPair{"quic", []byte{0x23, 0x29}}, enrPair{"udp", []byte{0x10, 0}}), "1.2.3.4:9001"},
		"udp alone":               {record(ip, enrPair{"udp", []byte{80}}), "1.2.3.4:80"},
		"port zero is none":       {record(ip, enrPair{"quic", nil}), ""},
		"a port of three bytes":   {record(ip, enrPair{"quic", []byte{1, 2, 3}}), ""},
		"an address of 16 bytes":  {record(enrPair{"ip", make([]byte, 16)}, enrPair{"quic", []byte{80}}), ""},
		"a port without address":  {record(enrPair{"quic", []byte{80}}), ""},
		"IPv6 with its own port":  {record(enrPair{"ip6", make([]byte, 16)}, enrPair{"quic6", []byte{80}}), "[::]:80"},
		"IPv6 without quic6":      {record(enrPair{"ip6", make([]byte, 16)}, enrPair{"udp6", []byte{81}}), "[::]:81"},
		"IPv6 without any of its": {record(enrPair{"ip6", make([]byte, 16)}, enrPair{"udp", []byte{81}}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, ok := tt.e.QUIC()
			require.Equal(t, tt.want != "", ok)
			if ok {
				require.Equal(t, tt.want, addr.String())
			}
		})
	}
}

func FuzzDecodeENR(f *testing.F) {
	f.Add(must(DecodeENR(exampleENR)).RLP())
	f.Add([]byte{0xc0})
	f.Add([]byte{0xf9, 0xff, 0xff})
	f.Add(must(NewENR(exampleKey, ENRFields{IP: netip.MustParseAddr("::1"), QUICPort: 1, IsAggregator: true})).RLP())
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeENRBytes(b)
		if err != nil {
			return
		}
		require.Equal(t, b, e.RLP())
		e.VerifySignature()
		e.QUIC()
		require.NoError(t, checkPeerID(e.PeerID()))
		_, err = DecodeENR(e.String())
		require.NoError(t, err)
	})
}

func FuzzParseNode(f *testing.F) {
	f.Add(exampleENR)
	f.Add("/ip4/127.0.0.1/udp/9000/quic-v1/p2p/16Uiu2HAmSH2XVgZqYHWucap5kuPzLnt2TsNQkoppVxB5eJGvaXwm")
	f.Add("/ip6/::1/udp/9000/quic-v1/p2p/12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNode(text)
		if err != nil {
			return
		}
		again, err := ParseNode(n.Multiaddr())
		require.NoError(t, err)
		require.Equal(t, n.PeerID, again.PeerID)
		require.Equal(t, n.QUIC, again.QUIC)
	})
}
