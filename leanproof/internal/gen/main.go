package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"aggnode/leanproof/internal/key"
)

func main() {
	listing := flag.String("listing", "listing.txt", "the guest, as DBG_DISASM writes it")
	consts := flag.String("constants", "constants.txt", "the constants, as DBG_PLACEHOLDERS writes them")
	seed := flag.String("seed", seed070, "the transcript seed that the guest must have, in hexadecimal; empty for a new version")
	out := flag.String("out", "leanproof/internal/key", "folder of the package key")
	flag.Parse()
	if err := run(*listing, *consts, *seed, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// seed070 is the seed of py-lean-pq 0.7.0, as found in its memory.
const seed070 = "d1db6ed45cb0d780a5c4e242df9dcd20aba902097d193bffb19fa7036ee825e4"

func run(listing, consts, seed, out string) error {
	if err := writeGuest(listing, seed, filepath.Join(out, "guest-0.7.0.bin")); err != nil {
		return fmt.Errorf("guest: %w", err)
	}
	if err := writeLayout(consts, out); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return nil
}

// writeGuest writes the guest's file once what it decodes to has the seed, and prints the row of the key's table of versions.
func writeGuest(listing, seed, path string) error {
	text, err := os.ReadFile(listing)
	if err != nil {
		return err
	}
	instructions, err := parseListing(string(text))
	if err != nil {
		return fmt.Errorf("parse %s: %w", listing, err)
	}
	guest, err := encodeGuest(instructions)
	if err != nil {
		return err
	}
	k, err := key.Decode(guest)
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%x", k.TranscriptSeed())
	if seed != "" && got != seed {
		return fmt.Errorf("the seed is %s, want %s", got, seed)
	}
	fmt.Printf("seed   %s\ndigest %x\n", got, sha256.Sum256(guest))
	return os.WriteFile(path, guest, 0o644)
}

// writeLayout writes the constants as Go data.
func writeLayout(consts, out string) error {
	text, err := os.ReadFile(consts)
	if err != nil {
		return err
	}
	c, err := parseConstants(string(text))
	if err != nil {
		return fmt.Errorf("parse %s: %w", consts, err)
	}
	for name, parts := range map[string][]func(*reader, *writer){
		"constants_gen.go": {scalars, committed},
		"keccak_gen.go":    {keccak},
		"ladder_gen.go":    {ladder},
		"blocks_gen.go":    {bus},
	} {
		r, w := &reader{from: c}, newWriter()
		for _, part := range parts {
			part(r, w)
		}
		if r.err != nil {
			return fmt.Errorf("%s: %w", name, r.err)
		}
		source, err := w.formatted()
		if err != nil {
			return fmt.Errorf("format %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(out, name), source, 0o644); err != nil {
			return err
		}
	}
	return nil
}
