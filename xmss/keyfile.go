package xmss

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrKeyFile: the bytes are no key file of this package, or a damaged one.
var ErrKeyFile = errors.New("not a valid key file")

// A key file, integers little-endian:
//
//	0   magic "XMSSKEY" and version 1
//	8   scheme u8 (1 blake2s, 2 keccak), 3 zero bytes
//	12  first epoch u32, last epoch u32
//	20  seed 32
//	52  public key 32
//	84  rows: blake2s: the level-9 nodes first>>9 .. last>>9
//	          keccak: 128 level-9 nodes of the top tree, 128 of the bottom tree of the first epoch, and the 1200 bytes with
//	          which the top layer signs that tree
//	end SHA-256 of all before, 32
const (
	keyMagic      = "XMSSKEY\x01"
	keySchemeAt   = len(keyMagic)
	keyRangeAt    = keySchemeAt + 4
	keySeedAt     = keyRangeAt + 8
	keyPublicAt   = keySeedAt + SeedSize
	keyRowsAt     = keyPublicAt + PublicKeySize
	keySumSize    = sha256.Size
	keyKeccakRows = 2*kcRowSize*nodeSize + kcPartSize
)

// MaxKeyFileSize is the largest key file in bytes: a blake2s key over 2^18 epochs that begin inside a subtree.
const MaxKeyFileSize = keyRowsAt + (1<<(18-subtreeHeight)+1)*nodeSize + keySumSize

// MarshalBinary is the key file: seed, public key and one row of each tree. It is a secret. At most MaxKeyFileSize bytes.
func (k *SecretKey) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, MaxKeyFileSize), keyMagic...)
	b = append(b, byte(k.scheme), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, k.start)
	b = binary.LittleEndian.AppendUint32(b, k.end)
	b = append(b, k.seed[:]...)
	b = append(b, k.public[:]...)
	b = k.parts.appendRows(b)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// ParseSecretKey reads a key file. It is strict: there is one file for a key, and every part is checked against the others: the checksum,
// the public parameter against the seed, the rows against the root, and for keccak the top layer's signature of the bottom tree. Only
// the rows' leaves are taken on trust (a subtree is compared with its row when it is built). Keeps no reference to b; under 1 ms.
func ParseSecretKey(b []byte) (*SecretKey, error) {
	k, err := parseKeyHeader(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	rows := b[keyRowsAt : len(b)-keySumSize]
	if k.scheme == Blake2s {
		k.parts = newB2Key(newB2Secret(&k.seed), k.start, k.end, readNodes(rows))
	} else {
		k.parts, err = parseKcRows(&k.seed, k.start>>kcHeight, rows)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
		}
	}
	if k.parts.publicKey() != k.public {
		return nil, fmt.Errorf("%w: seed and rows do not lead to the public key", ErrKeyFile)
	}
	return k, nil
}

// parseKeyHeader reads everything but the rows, whose length it has checked.
func parseKeyHeader(b []byte) (*SecretKey, error) {
	switch {
	case len(b) < keyRowsAt+keySumSize || len(b) > MaxKeyFileSize:
		return nil, fmt.Errorf("%d bytes", len(b))
	case string(b[:keySchemeAt]) != keyMagic:
		return nil, errors.New("unknown magic or version")
	case !bytes.Equal(b[keySchemeAt+1:keyRangeAt], []byte{0, 0, 0}):
		return nil, errors.New("reserved bytes are not zero")
	}
	k := &SecretKey{
		scheme: Scheme(b[keySchemeAt]),
		start:  binary.LittleEndian.Uint32(b[keyRangeAt:]),
		end:    binary.LittleEndian.Uint32(b[keyRangeAt+4:]),
		seed:   [SeedSize]byte(b[keySeedAt:]),
		public: PublicKey(b[keyPublicAt:]),
	}
	if err := k.scheme.checkRange(k.start, k.end); err != nil {
		return nil, err
	}
	rows := keyKeccakRows
	if k.scheme == Blake2s {
		rows = b2RowSize(k.start, k.end) * nodeSize
	}
	if want := keyRowsAt + rows + keySumSize; len(b) != want {
		return nil, fmt.Errorf("%d bytes instead of %d", len(b), want)
	}
	body := b[:len(b)-keySumSize]
	if sha256.Sum256(body) != [keySumSize]byte(b[len(body):]) {
		return nil, errors.New("checksum does not match")
	}
	return k, nil
}

// parseKcRows reads the rows of a keccak key whose first epoch lies in the bottom tree of that index.
func parseKcRows(seed *[SeedSize]byte, index uint32, rows []byte) (*kcKey, error) {
	k := &kcKey{secret: newKcSecret(seed)}
	const rowBytes = kcRowSize * nodeSize
	k.top = k.secret.newTop(readNodes(rows[:rowBytes]))
	k.first = &kcBottomTree{
		index: index,
		upper: k.secret.newBottom(index, readNodes(rows[rowBytes:2*rowBytes])),
		part:  bytes.Clone(rows[2*rowBytes:]),
	}
	signed := k.first.upper.top()
	root, ok := kcTopRoot(&k.secret.param, index, &signed, k.first.part)
	if !ok || root != k.top.top() {
		return nil, errors.New("the top tree does not sign the bottom tree")
	}
	return k, nil
}

func appendNodes(b []byte, nodes []node) []byte {
	for i := range nodes {
		b = append(b, nodes[i][:]...)
	}
	return b
}

func readNodes(b []byte) []node {
	nodes := make([]node, len(b)/nodeSize)
	for i := range nodes {
		nodes[i] = node(b[i*nodeSize:])
	}
	return nodes
}
