package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"aggnode/leanproof"
	"aggnode/prover"
	"aggnode/scheduler"
	"aggnode/wire"
)

// verifyAnswer is what `aggnode verify --json` prints.
type verifyAnswer struct {
	Valid    bool          `json:"valid"`
	Backend  string        `json:"backend"`
	Verifier string        `json:"verifier"` // native or child
	Bytes    int           `json:"bytes"`
	Claims   []verifyClaim `json:"claims"`                   // leanXMSS, the scheme of validators
	SPHINCS  []verifyClaim `json:"sphincs_claims,omitempty"` // leanSPHINCS, which no node takes
	Error    string        `json:"error,omitempty"`
	CheckMS  float64       `json:"check_ms"`
}

type verifyClaim struct {
	PublicKey string `json:"public_key"`
	Message   string `json:"message"`
}

func newVerifyCommand() *cobra.Command {
	var (
		proofFile, proverDir string
		asJSON, child        bool
	)
	cmd := &cobra.Command{
		Use:   "verify --proof FILE",
		Short: "Check a proof and print the claims it makes",
		Long: `verify checks the raw bytes of a proof and prints what it claims: which public keys signed which
message (for an aggregate of attestations, the data root), in both schemes that a proof may speak
of. A node takes leanXMSS claims only. Exit code 1 when the proof is refused. Proofs are those of
lean-pq; nothing needs to be installed, except with --child, which asks the installed py-lean-pq
instead. A proof of the embedded backend bundle does not hold the keys that it is about, so it can
only be checked by a node that knows the registry.`,
		Example: `  aggnode verify --proof proof.bin
  aggnode verify --proof proof.bin --json
  aggnode verify --proof proof.bin --child`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if proofFile == "" {
				return errors.New("--proof FILE is required")
			}
			proof, err := readProof(proofFile)
			if err != nil {
				return err
			}
			var answer *verifyAnswer
			if child {
				answer, err = verifyInChild(cmd.Context(), proof, proverDir, cmd.ErrOrStderr())
			} else {
				answer, err = verifyNatively(cmd.Context(), proof)
			}
			if err != nil {
				return fmt.Errorf("check %s: %w", proofFile, err)
			}
			answer.Backend, answer.Bytes = "lean-pq", len(proof)
			return printVerify(cmd.OutOrStdout(), asJSON, answer)
		},
	}
	f := cmd.Flags()
	f.StringVar(&proofFile, "proof", "", "raw bytes of a proof, `FILE`")
	f.BoolVar(&child, "child", false, "check with the installed py-lean-pq (about 3 s to start)")
	f.StringVar(&proverDir, "prover-dir", "", "with --child: environment made by `aggnode prover install`")
	f.BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// readProof reads at most one proof's worth of bytes.
func readProof(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--proof: %w", err)
	}
	defer func() { _ = file.Close() }()
	proof, err := io.ReadAll(io.LimitReader(file, wire.MaxProofSize+1))
	if err != nil {
		return nil, fmt.Errorf("--proof: %w", err)
	}
	if len(proof) > wire.MaxProofSize {
		return nil, fmt.Errorf("--proof %s: more than %d bytes, no proof is that long", path, wire.MaxProofSize)
	}
	return proof, nil
}

// verifyNatively checks in this process. The error is not about the proof.
func verifyNatively(ctx context.Context, proof []byte) (*verifyAnswer, error) {
	v, err := leanproof.New()
	if err != nil {
		return nil, err
	}
	if err := v.SelfTest(ctx); err != nil {
		return nil, err
	}
	started := time.Now()
	claims, err := v.Check(ctx, proof)
	took := msSince(started)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &verifyAnswer{
		Valid: err == nil, Verifier: "native", Error: errorText(err), CheckMS: took,
		Claims: claimLines(claims.XMSS), SPHINCS: claimLines(claims.SPHINCS),
	}, nil
}

func claimLines(claims []leanproof.Claim) []verifyClaim {
	out := make([]verifyClaim, len(claims))
	for i, c := range claims {
		out[i] = verifyClaim{hex.EncodeToString(c.PublicKey[:]), hex.EncodeToString(c.Message[:])}
	}
	return out
}

// verifyInChild asks py-lean-pq. The error is not about the proof.
func verifyInChild(ctx context.Context, proof []byte, proverDir string, log io.Writer) (*verifyAnswer, error) {
	check, stop, err := startVerifier(ctx, proverDir, log)
	if err != nil {
		return nil, err
	}
	defer stop()
	started := time.Now()
	entries, err := check.Inspect(ctx, proof)
	if errors.Is(err, prover.ErrUnavailable) {
		return nil, err
	}
	a := &verifyAnswer{Valid: err == nil, Verifier: "child", Claims: []verifyClaim{}, Error: errorText(err), CheckMS: msSince(started)}
	for _, e := range entries {
		a.Claims = append(a.Claims, verifyClaim{hex.EncodeToString(e.PublicKey), hex.EncodeToString(e.Message[:])})
	}
	return a, nil
}

func msSince(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1000 }

// startVerifier starts a lean-pq verifier child; stop ends it.
func startVerifier(ctx context.Context, proverDir string, log io.Writer) (client *prover.Client, stop func(), err error) {
	env, err := prover.Locate(proverDir)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (run `aggnode prover install`)", err)
	}
	command, environ, err := prover.LeanPQ(env)
	if err != nil {
		return nil, nil, err
	}
	place, err := scheduler.New(scheduler.Config{})
	if err != nil {
		return nil, nil, err
	}
	client, err = prover.New(prover.Config{
		Command: command, Env: environ, Role: prover.RoleVerify, Place: place.Place(scheduler.ClassVerifier),
		CallTimeout: 30 * time.Second, // a person waits for the answer, on whatever machine
	})
	if err != nil {
		return nil, nil, err
	}
	_, _ = fmt.Fprintln(log, "starting the lean-pq verifier (about 3 s) ...")
	runCtx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- client.Run(runCtx) }()
	stop = func() { cancel(); <-done }
	if err := client.WaitReady(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return client, stop, nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func printVerify(w io.Writer, asJSON bool, a *verifyAnswer) error {
	if asJSON {
		if err := json.NewEncoder(w).Encode(a); err != nil {
			return err
		}
	} else if a.Valid {
		_, _ = fmt.Fprintf(w, "valid: %d bytes, %d claims, checked in %.1f ms\n", a.Bytes, len(a.Claims)+len(a.SPHINCS), a.CheckMS)
		for _, c := range a.Claims {
			_, _ = fmt.Fprintf(w, "  public key %s  message %s\n", c.PublicKey, c.Message)
		}
		for _, c := range a.SPHINCS {
			_, _ = fmt.Fprintf(w, "  leanSPHINCS public key %s  message %s\n", c.PublicKey, c.Message)
		}
	} else {
		_, _ = fmt.Fprintf(w, "refused: %s\n", a.Error)
	}
	if !a.Valid {
		return exitError(1)
	}
	return nil
}
