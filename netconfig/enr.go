package netconfig

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// Limits and names of node records (EIP-778; leanSpec networking/enr).
const (
	maxENRSize       = 300 // bytes of a record
	enrPrefix        = "enr:"
	enrScheme        = "v4"
	enrSignatureSize = 64

	keyID           = "id"
	keyIP           = "ip"
	keyIP6          = "ip6"
	keyQUIC         = "quic"
	keyQUIC6        = "quic6"
	keyUDP          = "udp"
	keyPublicKey    = "secp256k1"
	keyIsAggregator = "is_aggregator"
)

// ENR is a node record: signed pairs of a key and a value, the keys ascending.
// It is immutable.
type ENR struct {
	seq       uint64
	signature [enrSignatureSize]byte
	pairs     []enrPair
	publicKey *secp256k1.PublicKey
}

// enrPair is one entry of a record. The value is the content of an RLP string.
type enrPair struct {
	key   string
	value []byte
}

// ENRFields is what a new record says.
type ENRFields struct {
	Seq          uint64
	IP           netip.Addr // IPv4 or IPv6
	QUICPort     uint16
	IsAggregator bool
}

// NewENR returns a record signed with a secp256k1 key. The same key and fields
// give the same record.
func NewENR(key [32]byte, f ENRFields) (*ENR, error) {
	priv, err := privateKey(key)
	if err != nil {
		return nil, err
	}
	if !f.IP.IsValid() || f.QUICPort == 0 {
		return nil, fmt.Errorf("node record needs an address and a port, has %q and %d", f.IP, f.QUICPort)
	}
	port := bigEndian(uint64(f.QUICPort))
	e := &ENR{seq: f.Seq, publicKey: priv.PubKey()}
	e.add(keyID, []byte(enrScheme))
	ip := f.IP.Unmap()
	if ip.Is4() {
		e.add(keyIP, ip.AsSlice())
	} else {
		e.add(keyIP6, ip.AsSlice())
	}
	if f.IsAggregator {
		e.add(keyIsAggregator, []byte{1})
	}
	if ip.Is4() {
		e.add(keyQUIC, port)
	} else {
		e.add(keyQUIC6, port)
	}
	e.add(keyPublicKey, e.publicKey.SerializeCompressed())
	e.sign(priv)

	return e, nil
}

// sign sets the signature. It is deterministic: the nonce is that of RFC 6979.
func (e *ENR) sign(priv *secp256k1.PrivateKey) {
	hash := e.contentHash()
	// The compact form is a recovery code, then r and s.
	copy(e.signature[:], ecdsa.SignCompact(priv, hash[:], true)[1:])
}

// add appends a pair; callers keep the keys ascending.
func (e *ENR) add(key string, value []byte) { e.pairs = append(e.pairs, enrPair{key, value}) }

// DecodeENR reads the text form of a record, "enr:" and base64. The signature is
// not checked: see VerifySignature.
func DecodeENR(text string) (*ENR, error) {
	body, ok := strings.CutPrefix(text, enrPrefix)
	if !ok {
		return nil, fmt.Errorf("decode node record: no %q in front", enrPrefix)
	}
	if len(body) > base64.RawURLEncoding.EncodedLen(maxENRSize) {
		return nil, fmt.Errorf("decode node record: more than %d bytes", maxENRSize)
	}
	// Strict: every record has one text form.
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return nil, fmt.Errorf("decode node record: %w", err)
	}

	return DecodeENRBytes(b)
}

// DecodeENRBytes reads the RLP form of a record.
func DecodeENRBytes(b []byte) (*ENR, error) {
	e, err := decodeENR(b)
	if err != nil {
		return nil, fmt.Errorf("decode node record: %w", err)
	}

	return e, nil
}

func decodeENR(b []byte) (*ENR, error) {
	if len(b) > maxENRSize {
		return nil, fmt.Errorf("%d bytes, at most %d allowed", len(b), maxENRSize)
	}
	list, isList, rest, err := rlpItem(b)
	if err != nil {
		return nil, err
	}
	if !isList || len(rest) != 0 {
		return nil, errors.New("not one list")
	}
	signature, list, err := nextString(list)
	if err != nil {
		return nil, err
	}
	if len(signature) != enrSignatureSize {
		return nil, fmt.Errorf("signature of %d bytes, must be %d", len(signature), enrSignatureSize)
	}
	seq, list, err := nextString(list)
	if err != nil {
		return nil, err
	}
	e := &ENR{signature: [enrSignatureSize]byte(signature)}
	if e.seq, err = rlpUint(seq); err != nil {
		return nil, err
	}
	for len(list) > 0 {
		var key, value []byte
		if key, list, err = nextString(list); err != nil {
			return nil, err
		}
		if value, list, err = nextString(list); err != nil {
			return nil, err
		}
		if n := len(e.pairs); n > 0 && e.pairs[n-1].key >= string(key) {
			return nil, fmt.Errorf("key %q after %q", key, e.pairs[n-1].key)
		}
		e.add(string(key), append([]byte(nil), value...))
	}
	if id, _ := e.Value(keyID); string(id) != enrScheme {
		return nil, fmt.Errorf("identity scheme %q, must be %q", id, enrScheme)
	}
	compressed, _ := e.Value(keyPublicKey)
	if len(compressed) != secp256k1.PubKeyBytesLenCompressed {
		return nil, fmt.Errorf("public key of %d bytes, must be %d", len(compressed), secp256k1.PubKeyBytesLenCompressed)
	}
	if e.publicKey, err = secp256k1.ParsePubKey(compressed); err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}

	return e, nil
}

// nextString reads the first item of b, which must not be a list.
func nextString(b []byte) (content, rest []byte, err error) {
	content, isList, rest, err := rlpItem(b)
	if err != nil {
		return nil, nil, err
	}
	if isList {
		return nil, nil, errors.New("list inside the record")
	}

	return content, rest, nil
}

// String returns the text form.
func (e *ENR) String() string { return enrPrefix + base64.RawURLEncoding.EncodeToString(e.RLP()) }

// RLP returns the record in its only encoding.
func (e *ENR) RLP() []byte {
	return rlpList(append(appendRLPString(nil, e.signature[:]), e.content()...))
}

// content returns the items that are signed, without the head of their list.
func (e *ENR) content() []byte {
	b := appendRLPUint(nil, e.seq)
	for _, p := range e.pairs {
		b = appendRLPString(b, []byte(p.key))
		b = appendRLPString(b, p.value)
	}

	return b
}

// rlpList puts the head of a list in front of the items.
func rlpList(items []byte) []byte { return append(appendRLPHead(nil, 0xc0, len(items)), items...) }

// contentHash returns the Keccak-256 that the signature is over.
func (e *ENR) contentHash() (sum [32]byte) { return keccak256(rlpList(e.content())) }

// VerifySignature reports whether the record was signed with its own key.
func (e *ENR) VerifySignature() bool {
	var r, s secp256k1.ModNScalar
	if r.SetByteSlice(e.signature[:32]) || s.SetByteSlice(e.signature[32:]) || r.IsZero() || s.IsZero() {
		return false
	}
	hash := e.contentHash()

	return ecdsa.NewSignature(&r, &s).Verify(hash[:], e.publicKey)
}

// Seq returns the sequence number.
func (e *ENR) Seq() uint64 { return e.seq }

// Value returns the value of a key; it must not be written.
func (e *ENR) Value(key string) (value []byte, ok bool) {
	for _, p := range e.pairs {
		if p.key == key {
			return p.value, true
		}
	}

	return nil, false
}

// PublicKey returns the compressed secp256k1 key of the node.
func (e *ENR) PublicKey() [33]byte { return [33]byte(e.publicKey.SerializeCompressed()) }

// PeerID returns the libp2p peer id of the node.
func (e *ENR) PeerID() string { return PeerIDOf(e.PublicKey()) }

// NodeID returns the Keccak-256 of the uncompressed key.
func (e *ENR) NodeID() [32]byte { return keccak256(e.publicKey.SerializeUncompressed()[1:]) }

// IP4 returns the IPv4 address of the record.
func (e *ENR) IP4() (netip.Addr, bool) { return e.addr(keyIP, 4) }

// IP6 returns the IPv6 address of the record.
func (e *ENR) IP6() (netip.Addr, bool) { return e.addr(keyIP6, 16) }

func (e *ENR) addr(key string, size int) (netip.Addr, bool) {
	v, _ := e.Value(key)
	if len(v) != size {
		return netip.Addr{}, false
	}

	return netip.AddrFromSlice(v)
}

// Port returns the value of a port key, "quic" or "udp" for instance.
func (e *ENR) Port(key string) (uint16, bool) {
	v, ok := e.Value(key)
	if !ok || len(v) == 0 || len(v) > 2 {
		return 0, false
	}
	var b [2]byte
	copy(b[2-len(v):], v)
	port := binary.BigEndian.Uint16(b[:])

	return port, port != 0
}

// QUIC returns where to dial the node: its IPv4 address and the quic port, or
// the udp port where there is no quic port, or the same of IPv6.
func (e *ENR) QUIC() (netip.AddrPort, bool) {
	if ip, ok := e.IP4(); ok {
		for _, key := range []string{keyQUIC, keyUDP} {
			if port, ok := e.Port(key); ok {
				return netip.AddrPortFrom(ip, port), true
			}
		}
	}
	if ip, ok := e.IP6(); ok {
		for _, key := range []string{keyQUIC6, keyUDP + "6"} {
			if port, ok := e.Port(key); ok {
				return netip.AddrPortFrom(ip, port), true
			}
		}
	}

	return netip.AddrPort{}, false
}

// IsAggregator reports whether the record says that the node aggregates.
func (e *ENR) IsAggregator() bool {
	v, _ := e.Value(keyIsAggregator)

	return len(v) == 1 && v[0] == 1
}

// keccak256 is the hash of Ethereum, SHA-3 before its standard.
func keccak256(b []byte) (sum [32]byte) {
	h := sha3.NewLegacyKeccak256()
	h.Write(b)
	h.Sum(sum[:0])

	return sum
}
