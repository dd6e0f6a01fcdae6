package devnet

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"aggnode/netconfig/devkeys"
)

// maxProofBytes bounds what is read of one proof (wire: MAX_PROOF_SIZE).
const maxProofBytes = 512 << 10

// saver keeps the proofs that the observer verified: N.proof and, beside it, N.json with what the proof must claim.
type saver struct {
	dir        string
	publicKeys []string // by validator index, hex
}

func newSaver(dir, scheme string) (*saver, error) {
	attestation, _, err := devkeys.Load(scheme)
	if err != nil {
		return nil, fmt.Errorf("load the devnet keys: %w", err)
	}
	s := &saver{dir: dir}
	for _, k := range attestation {
		s.publicKeys = append(s.publicKeys, "0x"+hex.EncodeToString(k.PublicKey[:]))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // proofs are public
		return nil, fmt.Errorf("--save-proofs: %w", err)
	}
	return s, nil
}

type savedClaim struct {
	Slot       uint64   `json:"slot"`
	DataRoot   string   `json:"data_root"`
	PublicKeys []string `json:"public_keys"`
}

func (s *saver) save(ctx context.Context, c *client, r record) error {
	resp, err := c.get(ctx, fmt.Sprintf("%s/aggnode/v1/aggregates/%d/proof", c.api, r.Seq))
	if err != nil {
		return fmt.Errorf("fetch proof %d: %w", r.Seq, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch proof %d: %s", r.Seq, resp.Status)
	}
	proof, err := io.ReadAll(io.LimitReader(resp.Body, maxProofBytes+1))
	if err != nil {
		return fmt.Errorf("fetch proof %d: %w", r.Seq, err)
	}
	saved := savedClaim{Slot: r.Slot, DataRoot: r.DataRoot}
	for _, v := range r.Indices {
		if v >= 0 && v < len(s.publicKeys) {
			saved.PublicKeys = append(saved.PublicKeys, s.publicKeys[v])
		}
	}
	claim, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return fmt.Errorf("encode claim of proof %d: %w", r.Seq, err)
	}
	name := filepath.Join(s.dir, fmt.Sprintf("slot%d-%d", r.Slot, r.Seq))
	if err := os.WriteFile(name+".json", claim, 0o644); err != nil { //nolint:gosec // public
		return fmt.Errorf("save the claim: %w", err)
	}
	if err := os.WriteFile(name+".proof", proof, 0o644); err != nil { //nolint:gosec // public
		return fmt.Errorf("save the proof: %w", err)
	}
	return nil
}
