// Package wiretest has what the tests of several packages need to run the
// public fixtures: where they are, and the profile that they were made with.
// Nothing but tests imports it.
package wiretest

import (
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// Profile returns the profile of the public fixtures: keys of 52 bytes, the tiny
// signatures of 424 bytes, merged blocks. No network runs it, and LookupProfile
// does not know it.
func Profile() *wire.Profile {
	return &wire.Profile{
		Name:                "fixtures",
		Scheme:              "leansig-test",
		PublicKeySize:       52,
		SignatureSize:       424,
		Envelope:            wire.EnvelopeMerged,
		RegistryLimit:       wire.DefaultRegistryLimit,
		MaxAttestationsData: 8,
	}
}

// VectorsDir returns the folder of the public fixtures, which lies beside the
// repository and is not part of it. Without it the test is skipped, or fails
// where the environment names a CI.
func VectorsDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod above the test")
		dir = parent
	}
	vectors := filepath.Join(dir, "..", "shared", "vectors", "leanspec")
	if _, err := os.Stat(vectors); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the fixtures must be there in CI: %v", err)
		}
		t.Skipf("not run: no fixtures at %s", vectors)
	}

	return vectors
}

// Fixture is one case of a family.
type Fixture struct {
	// Name is "module/file" without the extension.
	Name string
	// Raw is the content of the single key of the file.
	Raw json.RawMessage
}

// Decode reads the fixture into v.
func (f *Fixture) Decode(t testing.TB, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(f.Raw, v), f.Name)
}

// Family returns all cases of a family, "ssz" or "networking_codec", in the
// order of their names.
func Family(t testing.TB, family string) []Fixture {
	t.Helper()
	var out []Fixture
	root := filepath.Join(VectorsDir(t), family)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // a fixture of ours
		if err != nil {
			return err
		}
		var file map[string]json.RawMessage
		if err := json.Unmarshal(b, &file); err != nil {
			return err
		}
		for _, raw := range file {
			name := filepath.Join(filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".json"))
			out = append(out, Fixture{Name: name, Raw: raw})
		}

		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, out, family)
	slices.SortFunc(out, func(a, b Fixture) int { return strings.Compare(a.Name, b.Name) })

	return out
}

// Hex is bytes that JSON spells as 0x and hexadecimal digits.
type Hex []byte

// UnmarshalJSON reads the text form; an empty text is no bytes.
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	out, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	*h = out

	return err
}
