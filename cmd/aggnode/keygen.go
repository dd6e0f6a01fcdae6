package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"aggnode/xmss"
)

func newKeygenCommand() *cobra.Command {
	var (
		schemeName, out string
		start, end      uint32
		workers         int
		asJSON          bool
	)
	cmd := &cobra.Command{
		Use:   "keygen --out FILE",
		Short: "Make one signing key from fresh randomness",
		Long: `keygen makes one XMSS key and writes its file (seed, public key, one row of the tree; under
16 KiB, mode 0600). The file is the whole secret: a copy of it can sign, and two signers
with one key will sooner or later sign twice at one epoch, which gives the key away.`,
		Example: `  aggnode keygen --scheme blake2s --start 0 --end 65535 --out validator_0_attester_key_sk.ssz
  aggnode keygen --scheme keccak --out key --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			scheme, err := xmss.SchemeByName(schemeName)
			if err != nil {
				return fmt.Errorf("--scheme %s: %w", schemeName, err)
			}
			if out == "" {
				return errors.New("--out FILE is required")
			}
			if _, err := os.Stat(out); err == nil {
				return fmt.Errorf("--out %s: the file exists; a key is never overwritten", out)
			}
			key, file, err := generateKey(cmd.Context(), scheme, start, end, workers, newProgress(cmd.ErrOrStderr(), "key"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(out, file, 0o600); err != nil {
				return fmt.Errorf("write the key: %w", err)
			}
			pk := key.PublicKey()
			w := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(w).Encode(map[string]any{
					"scheme": scheme.String(), "public_key": hex.EncodeToString(pk[:]),
					"start": start, "end": end, "file": out, "bytes": len(file),
				})
			}
			_, err = fmt.Fprintf(w, "public key %x\nscheme %s, epochs %d..%d, %d bytes in %s\n", pk, scheme, start, end, len(file), out)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&schemeName, "scheme", "blake2s", "signature scheme: blake2s or keccak, `NAME`")
	f.StringVar(&out, "out", "", "where the key goes; must not exist, `FILE`")
	f.Uint32Var(&start, "start", 0, "first epoch, `SLOT`")
	f.Uint32Var(&end, "end", 1<<16-1, "last epoch, `SLOT`")
	f.IntVar(&workers, "workers", 0, "goroutines; 0: one per core, `N`")
	f.BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// generateKey makes a key from fresh randomness and its file.
func generateKey(ctx context.Context, scheme xmss.Scheme, start, end uint32, workers int, p *progress) (*xmss.SecretKey, []byte, error) {
	var seed [xmss.SeedSize]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, nil, fmt.Errorf("read randomness: %w", err)
	}
	key, err := xmss.Generate(ctx, scheme, seed, start, end, xmss.GenerateOptions{Workers: workers, Progress: p.update})
	if err != nil {
		return nil, nil, fmt.Errorf("make the key: %w", err)
	}
	file, err := key.MarshalBinary()
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key: %w", err)
	}
	p.done()
	return key, file, nil
}

// progress writes "what: 12 of 128" to a terminal or log, at most every second.
type progress struct {
	out     io.Writer
	what    string
	started time.Time
	last    time.Time
}

func newProgress(out io.Writer, what string) *progress {
	now := time.Now()
	return &progress{out: out, what: what, started: now, last: now}
}

// update is safe for calls that come one at a time.
func (p *progress) update(done, total int) {
	now := time.Now()
	if now.Sub(p.last) < time.Second {
		return
	}
	p.last = now
	left := time.Duration(float64(now.Sub(p.started)) / float64(max(done, 1)) * float64(total-done))
	_, _ = fmt.Fprintf(p.out, "%s: %d of %d, about %v left\n", p.what, done, total, left.Round(time.Second)) // a lost line is no fault
}

func (p *progress) done() {
	if took := time.Since(p.started); took > 2*time.Second {
		_, _ = fmt.Fprintf(p.out, "%s: done in %v\n", p.what, took.Round(100*time.Millisecond))
	}
}
