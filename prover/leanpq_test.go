package prover

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tests against the real packages run where these variables name a Python that has them; `make interop` sets both.
const (
	leanPQPython       = "AGGNODE_TEST_LEANPQ_PYTHON"
	leanMultisigPython = "AGGNODE_TEST_LEANMULTISIG_PYTHON"
)

// The real package from the index that pip is configured for; `make interop` sets the variable.
func TestInstallFromTheIndex(t *testing.T) {
	const variable = "AGGNODE_TEST_INSTALL"
	if os.Getenv(variable) == "" {
		t.Skip("not run: " + variable + " is not set")
	}
	dir := filepath.Join(t.TempDir(), "prover")
	env, err := Install(t.Context(), InstallOptions{Dir: dir, Progress: os.Stdout})
	require.NoError(t, err)
	found, err := Locate(dir)
	require.NoError(t, err)
	require.Equal(t, env, found)
	command, environ, err := LeanPQ(found)
	require.NoError(t, err)
	v := start(t, Config{Command: command, Env: environ, Role: RoleVerify, Scheme: "keccak", HelloTimeout: 5 * time.Minute})
	waitLong(t, v)
	m, _ := materialOf("keccak")
	require.NoError(t, v.Verify(t.Context(), m.claim, m.proof))
}

// leanPQConfig is a client configuration for the real lean-pq backend.
func leanPQConfig(t *testing.T, role Role) Config {
	t.Helper()
	python := os.Getenv(leanPQPython)
	if python == "" {
		t.Skip("not run: " + leanPQPython + " names no Python with py-lean-pq")
	}
	command, env, err := LeanPQ(FromPython(python))
	require.NoError(t, err)
	return Config{Command: command, Env: env, Role: role, Scheme: "keccak", HelloTimeout: 5 * time.Minute}
}

func waitLong(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx))
}

func TestLeanPQ(t *testing.T) {
	p := start(t, leanPQConfig(t, RoleProve))
	waitLong(t, p)
	caps, _ := p.Capabilities()
	require.Equal(t, "lean-pq", caps.Backend)
	require.Equal(t, "py_lean_pq "+LeanPQVersion, caps.Revision)
	require.Equal(t, 2404, caps.SignatureSize)
	require.Positive(t, caps.HelloProve)

	cfg := leanPQConfig(t, RoleVerify)
	cfg.Calls, cfg.CallTimeout = 2, time.Minute
	v := start(t, cfg)
	waitLong(t, v)

	m, ok := materialOf("keccak")
	require.True(t, ok)
	job := Job{Message: m.claim.Message, Epoch: m.claim.Epoch, Raw: m.raw}
	r, err := p.Prove(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, m.proof, r.Proof, "proofs are deterministic")
	require.Positive(t, r.CPU)
	require.NoError(t, v.Verify(t.Context(), job.Claim(), r.Proof))
	t.Logf("two signatures: %d ms, %d ms of CPU", r.Wall.Milliseconds(), r.CPU.Milliseconds())

	t.Run("a merge job", func(t *testing.T) {
		leaf := Job{Message: job.Message, Epoch: job.Epoch, Raw: job.Raw[:1]}
		one, err := p.Prove(t.Context(), leaf)
		require.NoError(t, err)
		merge := Job{Message: job.Message, Epoch: job.Epoch, Raw: job.Raw[1:], Children: []Child{{leaf.Claim(), one.Proof}}}
		both, err := p.Prove(t.Context(), merge)
		require.NoError(t, err)
		require.NoError(t, v.Verify(t.Context(), job.Claim(), both.Proof))
		require.ErrorIs(t, v.Verify(t.Context(), leaf.Claim(), both.Proof), ErrClaimMismatch)
	})
	t.Run("proofs of 0 to 64 bytes and zeros are refused", func(t *testing.T) {
		for n := range 65 {
			for _, b := range [][]byte{m.proof[:n], make([]byte, n)} {
				require.ErrorIs(t, v.Verify(t.Context(), m.claim, b), ErrBadProof, n)
			}
		}
		require.ErrorIs(t, v.Verify(t.Context(), m.claim, make([]byte, len(m.proof))), ErrBadProof)
	})
	t.Run("mutations are refused by the same process", func(t *testing.T) {
		pid := v.Stats().PID
		rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test wants the same numbers each time
		for range 200 {
			b := bytes.Clone(m.proof)
			switch i := rng.IntN(len(b)); rng.IntN(4) {
			case 0:
				b[i] ^= 1 << rng.IntN(8)
			case 1:
				b = b[:i]
			case 2:
				j := rng.IntN(len(b))
				copy(b[i:], b[j:min(j+64, len(b))])
			case 3:
				b = append(b[:i], append([]byte{byte(i)}, b[i:]...)...)
			}
			if bytes.Equal(b, m.proof) {
				continue
			}
			err := v.Verify(t.Context(), m.claim, b)
			require.Error(t, err)
			require.NotErrorIs(t, err, ErrUnavailable)
		}
		require.Equal(t, pid, v.Stats().PID)
	})
	t.Run("inspect lists the claims", func(t *testing.T) {
		entries, err := v.Inspect(t.Context(), m.proof)
		require.NoError(t, err)
		require.Len(t, entries, 2)
		for i, e := range entries {
			require.Equal(t, m.claim.Key(i), e.PublicKey)
			require.Equal(t, m.claim.Message, e.Message)
		}
	})
	t.Run("a job killed in the middle, and the next one served", func(t *testing.T) {
		pid := p.Stats().PID
		ctx, cancel := context.WithTimeout(t.Context(), max(caps.HelloProve/5, 50*time.Millisecond))
		defer cancel()
		_, err := p.Prove(ctx, job)
		require.ErrorIs(t, err, ErrTimeout)
		waitLong(t, p)
		require.True(t, isGone(pid))
		r, err := p.Prove(t.Context(), job)
		require.NoError(t, err)
		require.Equal(t, m.proof, r.Proof)
	})
	t.Run("a verifier that dies is replaced", func(t *testing.T) {
		require.NoError(t, syscall.Kill(v.Stats().PID, syscall.SIGKILL))
		require.Eventually(t, func() bool { return !v.Ready() }, time.Minute, time.Millisecond)
		require.NoError(t, v.Verify(t.Context(), m.claim, m.proof), "a check waits for the new one")
	})
}

func TestLeanPQStopped(t *testing.T) {
	cfg := leanPQConfig(t, RoleProve)
	p := start(t, cfg)
	waitLong(t, p)
	m, _ := materialOf("keccak")
	job := Job{Message: m.claim.Message, Epoch: m.claim.Epoch, Raw: m.raw}
	require.NoError(t, syscall.Kill(p.Stats().PID, syscall.SIGSTOP))
	_, err := p.Prove(t.Context(), job)
	require.ErrorIs(t, err, ErrStuck)
	waitLong(t, p)
	_, err = p.Prove(t.Context(), job)
	require.NoError(t, err)
}

// The package accepts aggregates with claims of another scheme; no vote has such a proof.
func TestLeanPQRefusesOtherClaims(t *testing.T) {
	v := start(t, leanPQConfig(t, RoleVerify))
	waitLong(t, v)
	proof, err := os.ReadFile(filepath.Join("testdata", "sphincs.proof"))
	require.NoError(t, err)
	_, err = v.Inspect(t.Context(), proof)
	require.ErrorIs(t, err, ErrClaimMismatch)
	require.ErrorContains(t, err, "another kind")
}

func TestConformanceOfLeanPQ(t *testing.T) {
	cfg := leanPQConfig(t, RoleUnknown)
	_, err := Conformance(t.Context(), cfg, os.Stdout)
	require.NoError(t, err)
}

func TestConformanceOfLeanMultisig(t *testing.T) {
	python := os.Getenv(leanMultisigPython)
	if python == "" {
		t.Skip("not run: " + leanMultisigPython + " names no Python with py-lean-multisig")
	}
	child, err := filepath.Abs("testdata/leanmultisig_child.py")
	require.NoError(t, err)
	frames, err := filepath.Abs("leanpq_child.py")
	require.NoError(t, err)
	report, err := Conformance(t.Context(), Config{
		Command: []string{python, "-I", "-B", child, frames}, Env: childEnviron(), HelloTimeout: 5 * time.Minute,
	}, os.Stdout)
	require.NoError(t, err)
	require.Equal(t, 1212, report.Capabilities.SignatureSize)
	require.NotEqual(t, "keccak", report.Capabilities.Scheme)
}

// An argument of a command holds at most 128 KiB (MAX_ARG_STRLEN), and the child program is one.
func TestTheChildProgramFitsAnArgument(t *testing.T) {
	t.Parallel()
	require.Contains(t, leanPQChild, "class LeanPQ:")
	require.Less(t, len(leanPQChild), 100<<10)
	require.NotContains(t, leanPQChild, "\x00")
}
