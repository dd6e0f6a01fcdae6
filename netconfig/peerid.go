package netconfig

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
)

// Parts of a peer id (libp2p peer-ids specification): the multihash of the
// protobuf form of a public key.
const (
	multihashIdentity = 0x00
	multihashSHA256   = 0x12
	maxInlineKey      = 42 // bytes of a key that is its own hash
	maxPeerIDText     = 64 // characters; real ones have at most 53
	base58Alphabet    = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

// secp256k1KeyHead is the protobuf form of a secp256k1 key up to its 33 bytes:
// key type 2, then the data field. Never written.
var secp256k1KeyHead = []byte{0x08, 0x02, 0x12, 33}

// PeerIDOf returns the text form of the peer id of a compressed secp256k1 key:
// base58 of the identity multihash, 16Uiu2….
func PeerIDOf(compressed [33]byte) string {
	b := append([]byte{multihashIdentity, byte(len(secp256k1KeyHead) + len(compressed))}, secp256k1KeyHead...)

	return base58Encode(append(b, compressed[:]...))
}

// PeerIDOfKey returns the peer id of a secp256k1 private key.
func PeerIDOfKey(key [32]byte) (string, error) {
	priv, err := privateKey(key)
	if err != nil {
		return "", err
	}

	return PeerIDOf([33]byte(priv.PubKey().SerializeCompressed())), nil
}

// privateKey refuses numbers that are no private key.
func privateKey(key [32]byte) (*secp256k1.PrivateKey, error) {
	var s secp256k1.ModNScalar
	if overflow := s.SetBytes(&key); overflow != 0 || s.IsZero() {
		return nil, errors.New("not a secp256k1 private key")
	}

	return secp256k1.NewPrivateKey(&s), nil
}

// checkPeerID refuses a text that is no peer id of any key type.
func checkPeerID(text string) error {
	if len(text) > maxPeerIDText {
		return fmt.Errorf("peer id of %d characters", len(text))
	}
	b, err := base58Decode(text)
	if err != nil {
		return fmt.Errorf("peer id %q: %w", text, err)
	}
	if len(b) < 2 || int(b[1]) != len(b)-2 {
		return fmt.Errorf("peer id %q is no multihash", text)
	}
	isInline := b[0] == multihashIdentity && len(b)-2 <= maxInlineKey
	isHash := b[0] == multihashSHA256 && len(b) == 34
	if !isInline && !isHash {
		return fmt.Errorf("peer id %q is neither a key nor the hash of one", text)
	}

	return nil
}

// base58Encode returns the text of b in Bitcoin's alphabet.
func base58Encode(b []byte) string {
	var text []byte
	base, rest, digit := big.NewInt(58), new(big.Int).SetBytes(b), new(big.Int)
	for rest.Sign() > 0 {
		rest.DivMod(rest, base, digit)
		text = append(text, base58Alphabet[digit.Int64()])
	}
	for _, c := range b {
		if c != 0 {
			break
		}
		text = append(text, base58Alphabet[0])
	}
	slices.Reverse(text)

	return string(text)
}

// base58Decode reads a text in Bitcoin's alphabet. Callers bound its length.
func base58Decode(text string) ([]byte, error) {
	n, base := new(big.Int), big.NewInt(58)
	zeros := 0
	for i := range len(text) {
		digit := strings.IndexByte(base58Alphabet, text[i])
		if digit < 0 {
			return nil, fmt.Errorf("character %q is not base58", text[i])
		}
		if digit == 0 && zeros == i {
			zeros++
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(digit)))
	}

	return append(make([]byte, zeros), n.Bytes()...), nil
}

// LoadNodeKey reads the secp256k1 private key of a node: 64 hexadecimal digits,
// with or without 0x and a newline.
func LoadNodeKey(path string) (key [32]byte, err error) {
	b, err := readFile(path)
	if err != nil {
		return key, fmt.Errorf("read node key: %w", err)
	}
	if key, err = parseNodeKey(strings.TrimSpace(string(b))); err != nil {
		return key, fmt.Errorf("node key %s: %w", path, err)
	}

	return key, nil
}

// parseNodeKey reads 64 hexadecimal digits, with or without 0x. The errors do
// not repeat the text.
func parseNodeKey(text string) (key [32]byte, err error) {
	digits := trimHexPrefix(text)
	if len(digits) != 2*len(key) {
		return key, fmt.Errorf("%d characters, must be %d hexadecimal digits", len(digits), 2*len(key))
	}
	if _, err = hex.Decode(key[:], []byte(digits)); err != nil {
		return [32]byte{}, errors.New("not hexadecimal")
	}
	if _, err = privateKey(key); err != nil {
		return [32]byte{}, err
	}

	return key, nil
}

// trimHexPrefix returns the text without 0x in front.
func trimHexPrefix(s string) string {
	if len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:]
	}

	return s
}

// maxFileSize bounds what is read of any one file, in bytes: a config.yaml of
// 4096 validators has 700 KB.
const maxFileSize = 16 << 20

// readFile reads a file of at most maxFileSize bytes.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), maxFileSize)
	}

	return os.ReadFile(path) //nolint:gosec // the path is the operator's
}
