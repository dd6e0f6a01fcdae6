package xmss_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/xmss"
)

var update = flag.Bool("update", false, "write the golden files of this package's own making")

// hexBytes is a byte string of a vector file; Null tells an absent value from an empty one.
type hexBytes struct {
	B    []byte
	Null bool
}

func (h *hexBytes) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == nil {
		h.Null = true
		return nil
	}
	var err error
	h.B, err = hex.DecodeString(*s)
	return err
}

func (h hexBytes) MarshalJSON() ([]byte, error) {
	if h.Null {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(h.B))
}

// message and publicKey are for vectors whose lengths are those of the types.
func (h *hexBytes) message() [xmss.MessageSize]byte { return [xmss.MessageSize]byte(h.B) }
func (h *hexBytes) publicKey() xmss.PublicKey       { return xmss.PublicKey(h.B) }

func readVectors(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, into))
}

func writeVectors(t testing.TB, name string, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join("testdata", filepath.FromSlash(name)), append(b, '\n'), 0o644))
}

// blakeCase is a case of blake2s/verify.json; kcCase one of keccak/xmss-keccak.json.
type blakeCase struct {
	Case      string   `json:"case"`
	PublicKey hexBytes `json:"public_key"`
	Epoch     uint32   `json:"epoch"`
	Message   hexBytes `json:"message"`
	Signature hexBytes `json:"signature"`
	Valid     bool     `json:"valid"`
}

type kcCase struct {
	ID        int      `json:"id"`
	Name      string   `json:"name"`
	Key       string   `json:"key"`
	PublicKey hexBytes `json:"public_key"`
	Message   hexBytes `json:"message"`
	Signature hexBytes `json:"signature"`
	Verdict   string   `json:"verdict"`
	Reason    string   `json:"reason"`
}

func blakeCases(t testing.TB) (cases []blakeCase) {
	readVectors(t, "blake2s/verify.json", &cases)
	require.NotEmpty(t, cases)
	return cases
}

func kcCases(t testing.TB) []kcCase {
	var f struct {
		Cases []kcCase `json:"cases"`
	}
	readVectors(t, "keccak/xmss-keccak.json", &f)
	require.Len(t, f.Cases, 116)
	return f.Cases
}

// registry is blake2s/registry64.json: 64 keys that signed one message at one epoch.
type registry struct {
	Message hexBytes `json:"message"`
	Epoch   uint32   `json:"epoch"`
	Signers []struct {
		Seed      hexBytes `json:"seed"`
		Start     uint32   `json:"epoch_start"`
		End       uint32   `json:"epoch_end"`
		PublicKey hexBytes `json:"public_key"`
		Signature hexBytes `json:"signature"`
	} `json:"signers"`
}

func readRegistry(t testing.TB) (r registry) {
	readVectors(t, "blake2s/registry64.json", &r)
	require.Len(t, r.Signers, 64)
	return r
}

// checks are the valid checks of the registry, in order.
func (r *registry) checks() (checks []xmss.Check) {
	for i := range r.Signers {
		s := &r.Signers[i]
		checks = append(checks, xmss.Check{
			PublicKey: s.PublicKey.publicKey(), Epoch: r.Epoch, Message: r.Message.message(), Signature: s.Signature.B,
		})
	}
	return checks
}

// kcValid are the valid checks among the keccak vectors.
func kcValid(t testing.TB) (checks []xmss.Check) {
	for _, c := range kcCases(t) {
		if c.Verdict == "ok" {
			checks = append(checks, xmss.Check{
				PublicKey: c.PublicKey.publicKey(), Epoch: leafIndex(c.Signature.B), Message: c.Message.message(), Signature: c.Signature.B,
			})
		}
	}
	require.NotEmpty(t, checks)
	return checks
}
