package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "aggnode"

// allowed lists, for each of our packages, which of our other packages it may
// import directly. "*" means every package of the list above it in the layering
// (assembly of a node, command line). Keys and values are paths below the module.
var allowed = map[string][]string{
	"internal/arch":             {},
	"internal/lanes":            {},
	"internal/script":           {},
	"xmss":                      {"internal/lanes"},
	"leanproof":                 {"internal/lanes", "leanproof/internal/gf", "leanproof/internal/key"},
	"leanproof/internal/gf":     {},
	"leanproof/internal/key":    {"internal/lanes", "leanproof/internal/gf"},
	"leanproof/internal/gen":    {"leanproof/internal/gf", "leanproof/internal/key"},
	"wire":                      {},
	"wire/wiretest":             {"wire"},
	"scheduler":                 {},
	"prover":                    {},
	"prover/bundle":             {"prover", "xmss"},
	"pubkeycache":               {"xmss", "wire"},
	"netconfig":                 {"wire"},
	"netconfig/devkeys":         {},
	"netconfig/devkeys/gen":     {"netconfig/devkeys", "xmss"},
	"chain":                     {"wire"},
	"chain/proposer":            {"wire"},
	"verify":                    {"wire", "xmss", "pubkeycache", "prover", "leanproof"},
	"aggregate":                 {"wire", "pubkeycache", "prover"},
	"pipeline":                  {"wire"},
	"store":                     {},
	"signer":                    {"wire", "xmss", "store"},
	"signer/keystore":           {"wire", "xmss", "store"},
	"p2p":                       {"wire", "pipeline"},
	"telemetry":                 {},
	"telemetry/leanmetricstest": {},
	"api":                       {"wire"},
	"devnet":                    {"netconfig", "netconfig/devkeys"},
	"bench": {
		"chain", "internal/lanes", "leanproof", "netconfig/devkeys", "p2p", "pipeline", "prover", "pubkeycache", "scheduler", "signer", "store", "verify", "wire", "xmss",
	},
	"bench/gen":   {"bench", "prover"},
	"node":        {"*"},
	"cmd/aggnode": {"*"},
}

// restricted names third-party and standard packages that only some of our
// packages may import; a prefix ends with a slash or is exact.
var restricted = map[string][]string{
	"github.com/libp2p/go-libp2p":        {"p2p", "bench"},
	"github.com/libp2p/go-libp2p-pubsub": {"p2p", "bench"},
	"os/exec":                            {"prover", "scheduler", "devnet", "bench"},
	"golang.org/x/sys/unix":              {"prover", "scheduler", "devnet", "bench", "store"},
	"go.opentelemetry.io/otel/sdk":       {"telemetry"},
	"unsafe":                             {"internal/lanes"},
	"C":                                  {},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("go list: %s", exit.Stderr)
	}
	require.NoError(t, err)
	var pkgs []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("decode go list output: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestImportsGoInOneDirection(t *testing.T) {
	pkgs := list(t)
	require.Greater(t, len(pkgs), 10, "the module was listed")
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s has no row in the import table", name)
			continue
		}
		for _, imp := range p.Imports {
			own, isOwn := strings.CutPrefix(imp, module+"/")
			if isOwn && !slices.Contains(may, own) && !slices.Contains(may, "*") {
				t.Errorf("%s imports %s, which its row does not allow", name, own)
			}
		}
	}
}

func TestRestrictedImportsStayInTheirPackages(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			for prefix, owners := range restricted {
				if imp != prefix && !strings.HasPrefix(imp, prefix+"/") {
					continue
				}
				if !slices.Contains(owners, name) {
					t.Errorf("%s imports %s, which only %v may", name, imp, owners)
				}
			}
		}
	}
}
