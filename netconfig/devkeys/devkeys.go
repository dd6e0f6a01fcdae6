package devkeys

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
)

// Validators is the number of validators that have keys.
const Validators = 64

// maxFileSize bounds a key file in bytes: that of package xmss stays below 16 KiB.
const maxFileSize = 16 << 10

const publicKeySize = 32 // bytes

// The folder and not its files, so that gen can be built before they exist; what it has begun to write starts with a dot, which
// embed leaves out.
//
//go:embed data
var files embed.FS

// Key is one signing key. File is a key file of package xmss (MarshalBinary), below 16 KiB.
type Key struct {
	PublicKey [publicKeySize]byte
	File      []byte
}

// Load gives the attestation and the proposal keys of all validators for the scheme of that name ("blake2s", "keccak"), each by
// validator index.
func Load(scheme string) (attestation, proposal []Key, err error) {
	b, err := files.ReadFile("data/" + scheme + ".bin")
	if err != nil {
		return nil, nil, fmt.Errorf("no devnet keys of scheme %q", scheme)
	}
	keys := make([]Key, 2*Validators)
	for i := range keys {
		if keys[i], b, err = CutKey(b); err != nil {
			return nil, nil, fmt.Errorf("devnet key %d of scheme %s: %w", i, scheme, err)
		}
	}
	if len(b) != 0 {
		return nil, nil, fmt.Errorf("devnet keys of scheme %s: %d bytes too many", scheme, len(b))
	}
	return keys[:Validators:Validators], keys[Validators:], nil
}

// AppendKey appends the record of a key to b. The key file is at most 16 KiB.
func AppendKey(b []byte, k Key) []byte {
	b = append(b, k.PublicKey[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(k.File)))
	return append(b, k.File...)
}

// CutKey reads the record that b starts with and gives the rest; the key refers to b.
func CutKey(b []byte) (k Key, rest []byte, err error) {
	const head = publicKeySize + 4
	if len(b) < head {
		return Key{}, nil, errors.New("record is cut short")
	}
	n := binary.LittleEndian.Uint32(b[publicKeySize:])
	if n > maxFileSize || int(n) > len(b)-head {
		return Key{}, nil, fmt.Errorf("record of %d bytes in %d", n, len(b)-head)
	}
	end := head + int(n)
	return Key{PublicKey: [publicKeySize]byte(b), File: b[head:end:end]}, b[end:], nil
}
