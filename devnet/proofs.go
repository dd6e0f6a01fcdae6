package devnet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// maxProofBytes bounds what is read of one proof (wire: MAX_PROOF_SIZE).
const maxProofBytes = 512 << 10

// saver keeps the proofs that the observer verified: N.proof and, beside it, N.json with what the proof must claim.
type saver struct {
	dir string
}

func newSaver(dir string) (*saver, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // proofs are public
		return nil, fmt.Errorf("--save-proofs: %w", err)
	}
	return &saver{dir: dir}, nil
}

type savedClaim struct {
	Slot       uint64   `json:"slot"`
	DataRoot   string   `json:"data_root"`
	PublicKeys []string `json:"public_keys"`
}

func (s *saver) save(ctx context.Context, c *client, r record) error {
	resp, err := c.get(ctx, fmt.Sprintf("%s/aggnode/v1/aggregates/%d/proof", c.api, r.ID))
	if err != nil {
		return fmt.Errorf("fetch proof %d: %w", r.ID, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch proof %d: %s", r.ID, resp.Status)
	}
	proof, err := io.ReadAll(io.LimitReader(resp.Body, maxProofBytes+1))
	if err != nil {
		return fmt.Errorf("fetch proof %d: %w", r.ID, err)
	}
	claim, err := json.MarshalIndent(savedClaim{Slot: r.Slot, DataRoot: r.DataRoot, PublicKeys: r.PublicKeys}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode claim of proof %d: %w", r.ID, err)
	}
	name := filepath.Join(s.dir, fmt.Sprintf("slot%d-%d", r.Slot, r.ID))
	if err := os.WriteFile(name+".json", claim, 0o644); err != nil { //nolint:gosec // public
		return fmt.Errorf("save the claim: %w", err)
	}
	if err := os.WriteFile(name+".proof", proof, 0o644); err != nil { //nolint:gosec // public
		return fmt.Errorf("save the proof: %w", err)
	}
	return nil
}
