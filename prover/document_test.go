package prover

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the parts of documents that are made by tests")

const protocolDocument = "../docs/prover-protocol.md"

// The example exchange of the protocol document is what the codec writes.
func TestProtocolDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(protocolDocument)
	require.NoError(t, err)
	text := string(b)
	head, rest, ok := strings.Cut(text, "-update -->\n")
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, "<!-- end of example")
	require.True(t, ok)
	want := head + "-update -->\n" + exampleExchange() + "<!-- end of example" + tail
	if *update {
		require.NoError(t, os.WriteFile(protocolDocument, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, text, "run: go test ./prover -run TestProtocolDocument -update")
}

// The tables of the document name every kind with its limit and every code.
func TestProtocolDocumentIsComplete(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(protocolDocument)
	require.NoError(t, err)
	for k, limit := range limits {
		row := fmt.Sprintf("| 0x%02x | `%s` | ", uint8(k), k)
		_, after, ok := strings.Cut(string(b), row)
		require.True(t, ok, row)
		cells := strings.Split(after, "|")
		require.Equal(t, map[bool]string{true: "child", false: "node"}[k.fromChild()], strings.TrimSpace(cells[0]), row)
		require.Equal(t, fmt.Sprint(limit), strings.ReplaceAll(strings.TrimSpace(cells[1]), " ", ""), row)
	}
	for c := CodeInvalidProof; int(c) < len(codeNames); c++ {
		require.Contains(t, string(b), fmt.Sprintf("| %d | `%s` |", uint16(c), c))
	}
}

func exampleExchange() string {
	var out strings.Builder
	show := func(from, what string, f frame) {
		fmt.Fprintf(&out, "%s: `%s` %s\n\n```\n", from, f.kind, what)
		b := appendFrame(nil, f)
		for len(b) > 0 {
			n := min(len(b), 32)
			fmt.Fprintln(&out, hex.EncodeToString(b[:n]))
			b = b[n:]
		}
		out.WriteString("```\n\n")
	}
	h := hello{versionMin: 1, versionMax: 1, role: RoleProve, threads: 2, calls: 1, progress: progressEvery, scheme: "toy"}
	show("node", "1", frame{kind: kindHello, id: 1, body: h.append(nil)})
	show("child", "1", frame{kind: kindStarted, id: 1, body: nil})
	r := ready{version: 1, ownAccepted: 1, ownRefused: 1, caps: Capabilities{
		Backend: "fake", Revision: "1", Scheme: "toy", PublicKeySize: 32, SignatureSize: 40, MaxChildren: 4, MaxRaw: 64, MinInputs: 1,
		ProofBytesMax: 1 << 20, Threads: 2, ClaimsInProof: true, Samples: true, SetupMemory: 1 << 20, ProveMemory: 1 << 20,
	}}
	show("child", "1", frame{kind: kindReady, id: 1, body: r.append(nil)})
	job := fakeJob(0, 1)
	show("node", "2, one raw signature at epoch 3, four seconds left", frame{kind: kindProve, id: 2, body: appendJob(nil, 4*time.Second, &job)})
	show("child", "2", frame{kind: kindStarted, id: 2, body: nil})
	p := progress{phase: 3, cpu: 250 * time.Millisecond, rss: 1 << 20}
	show("child", "2", frame{kind: kindProgress, id: 2, body: p.append(nil)})
	entries := fakeEntries(job.Claim())
	res := result{cpu: 300 * time.Millisecond, wall: 310 * time.Millisecond, entries: entries, proof: fakeProof(entries)}
	show("child", "2, one claim and a proof of 96 bytes", frame{kind: kindResult, id: 2, body: res.append(nil)})
	show("node", "3, which is not supported here", frame{kind: kindInspect, id: 3, body: (&request{proof: []byte{1}}).append(nil)})
	show("child", "3, `unsupported`", frame{kind: kindError, id: 3, body: appendRefusal(nil, &RefusedError{CodeUnsupported, -1, "this child is a prover"})})
	show("node", "4", frame{kind: kindBye, id: 4, body: nil})
	show("child", "4", frame{kind: kindGone, id: 4, body: nil})
	return out.String()
}
