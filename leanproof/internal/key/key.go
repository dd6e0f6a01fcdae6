package key

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
)

// ErrUnknownSeed says that no key of that seed is embedded.
var ErrUnknownSeed = errors.New("no verification key for this prover")

// Key is one prover version's key. It is immutable but for its pool of scratch memory, and not to be copied.
type Key struct {
	// Prover names the version, as its package does.
	Prover string
	// Seed starts every transcript of that version.
	Seed [32]byte

	table     table
	scratches sync.Pool // of *scratch
}

//go:embed guest-0.7.0.bin
var guest070 []byte

// version is an embedded key. Seed and digest are in hexadecimal, as the generator prints them.
type version struct {
	prover string
	seed   string
	digest string // SHA-256 of the guest's file
	load   func() (*Key, error)
}

// versions are the embedded keys, newest first. A prover with the same layout and another guest is one more row.
var versions = [...]version{
	newVersion(
		"py-lean-pq 0.7.0",
		"d1db6ed45cb0d780a5c4e242df9dcd20aba902097d193bffb19fa7036ee825e4",
		"233830751aad251bc90990319c36f22747587ca1607cd5034d227f1696c53549",
		guest070,
	),
}

func newVersion(prover, seed, digest string, guest []byte) version {
	v := version{prover: prover, seed: seed, digest: digest}
	v.load = sync.OnceValues(func() (*Key, error) {
		k, err := v.decode(guest)
		if err != nil {
			return nil, fmt.Errorf("load verification key of %s: %w", prover, err)
		}
		return k, nil
	})
	return v
}

// decode checks the guest's file against the digest and decodes it. The seed is not computed again: the digest stands for it.
func (v *version) decode(guest []byte) (*Key, error) {
	if digest := sha256.Sum256(guest); hex.EncodeToString(digest[:]) != v.digest {
		return nil, errGuest
	}
	k, err := Decode(guest)
	if err != nil {
		return nil, err
	}
	k.Prover = v.prover
	if _, err := hex.Decode(k.Seed[:], []byte(v.seed)); err != nil {
		return nil, err
	}
	return k, nil
}

// Load returns the key of the newest version. The first call decompresses it; later ones return the same key, or the same
// error, which only a damaged binary causes.
func Load() (*Key, error) { return versions[0].load() }

// LoadSeed returns the key of the version with that seed, or ErrUnknownSeed.
func LoadSeed(seed [32]byte) (*Key, error) {
	for i := range versions {
		if versions[i].seed == hex.EncodeToString(seed[:]) {
			return versions[i].load()
		}
	}
	return nil, ErrUnknownSeed
}

// Decode makes a key, without name and seed, of a guest's file that need not be trusted.
func Decode(guest []byte) (*Key, error) {
	g, err := decodeGuest(guest)
	if err != nil {
		return nil, err
	}
	return &Key{table: newTable(g)}, nil
}
