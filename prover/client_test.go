package prover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestProveAndVerify(t *testing.T) {
	t.Parallel()
	p := start(t, fakeConfig(RoleProve, modeGood))
	v := start(t, func() Config { c := fakeConfig(RoleVerify, modeGood); c.Calls, c.Spare = 3, true; return c }())
	waitReady(t, p)
	waitReady(t, v)
	caps, ok := p.Capabilities()
	require.True(t, ok)
	require.Equal(t, "fake", caps.Backend)
	require.Positive(t, caps.HelloProve)

	job := fakeJob(faultNone, 3)
	r, err := p.Prove(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, time.Millisecond, r.CPU)
	require.NoError(t, v.Verify(t.Context(), job.Claim(), r.Proof))

	t.Run("a merge job covers the children and the raw signatures", func(t *testing.T) {
		merge := Job{
			Epoch: job.Epoch, Message: job.Message, Raw: []Raw{fakeRaw(7, job.Message, job.Epoch)},
			Children: []Child{{Claim: job.Claim(), Proof: r.Proof}},
		}
		m, err := p.Prove(t.Context(), merge)
		require.NoError(t, err)
		require.Equal(t, 4, merge.Claim().Signers())
		require.NoError(t, v.Verify(t.Context(), merge.Claim(), m.Proof))
		entries, err := v.Inspect(t.Context(), m.Proof)
		require.NoError(t, err)
		require.Len(t, entries, 4)
		require.Equal(t, merge.Claim().Key(0), entries[0].PublicKey)
		require.Equal(t, merge.Message, entries[0].Message)
	})
	t.Run("a proof is refused for every claim but its own", func(t *testing.T) {
		fewer, more, other, none, unsorted := job.Claim(), job.Claim(), job.Claim(), job.Claim(), job.Claim()
		fewer.SignerSet = fewer.SignerSet[:64]
		more.SignerSet = NewSignerSet([][]byte{fakeKey(0), fakeKey(1), fakeKey(2), fakeKey(3)})
		other.Message[0] = 200
		none.SignerSet = nil
		unsorted.SignerSet = slices.Concat(unsorted.Key(1), unsorted.Key(0), unsorted.Key(2))
		for name, c := range map[string]Claim{"fewer": fewer, "more": more, "other": other, "none": none, "unsorted": unsorted} {
			require.ErrorIs(t, v.Verify(t.Context(), c, r.Proof), ErrClaimMismatch, name)
		}
	})
	t.Run("short, zero and altered proofs are refused", func(t *testing.T) {
		bad := [][]byte{make([]byte, len(r.Proof)), r.Proof[:len(r.Proof)-1], append(slices.Clone(r.Proof), 0), make([]byte, caps.ProofBytesMax+1)}
		for n := range 65 {
			bad = append(bad, r.Proof[:n], make([]byte, n))
		}
		for i := range r.Proof {
			if i%7 == 0 {
				bad = append(bad, flipBit(r.Proof, i))
			}
		}
		for _, b := range bad {
			err := v.Verify(t.Context(), job.Claim(), b)
			require.Error(t, err)
			require.NotErrorIs(t, err, ErrUnavailable)
			_, err = v.Inspect(t.Context(), b)
			require.ErrorIs(t, err, ErrBadProof)
		}
	})
	t.Run("stats name the children", func(t *testing.T) {
		require.Eventually(t, func() bool { return v.Stats().SparePID != 0 }, time.Minute, 10*time.Millisecond)
		s := v.Stats()
		require.True(t, s.Ready)
		require.NotEqual(t, s.PID, s.SparePID)
		require.Zero(t, s.Restarts)
		require.NoError(t, s.LastError)
		require.Zero(t, s.Running)
	})
	t.Run("a client has one role", func(t *testing.T) {
		var refused *RefusedError
		_, err := v.Prove(t.Context(), job)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, CodeUnsupported, refused.Code)
	})
}

func TestProveRefusesJobs(t *testing.T) {
	t.Parallel()
	p := start(t, fakeConfig(RoleProve, modeGood))
	waitReady(t, p)
	good := fakeJob(faultNone, 2)
	r, err := p.Prove(t.Context(), good)
	require.NoError(t, err)
	child := Child{Claim: good.Claim(), Proof: r.Proof}
	with := func(f func(*Job)) Job {
		j := Job{Message: good.Message, Epoch: good.Epoch, Raw: slices.Clone(good.Raw)}
		f(&j)
		return j
	}
	for _, c := range []struct {
		name  string
		job   Job
		code  Code
		index int
	}{
		{"a bad signature is named", with(func(j *Job) { j.Raw[1].Signature = flipBit(j.Raw[1].Signature, 3) }), CodeBadSignature, 1},
		{"a short signature", with(func(j *Job) { j.Raw[1].Signature = j.Raw[1].Signature[1:] }), CodeBadLength, 1},
		{"a long key", with(func(j *Job) { j.Raw[0].PublicKey = make([]byte, 33) }), CodeBadLength, 0},
		{"no inputs", with(func(j *Job) { j.Raw = nil }), CodeTooFewInputs, -1},
		{"too many raw signatures", with(func(j *Job) { j.Raw = slices.Repeat(j.Raw, 33) }), CodeTooManyRaw, -1},
		{"too many children", with(func(j *Job) { j.Raw, j.Children = nil, slices.Repeat([]Child{child}, 5) }), CodeTooManyChildren, -1},
		{"overlap of raw signatures", with(func(j *Job) { j.Raw[0] = j.Raw[1] }), CodeOverlap, -1},
		{"overlap with a child", with(func(j *Job) { j.Children = []Child{child} }), CodeOverlap, -1},
		{"a child of another epoch", with(func(j *Job) { j.Children = []Child{child}; j.Epoch++ }), CodeBadChild, 0},
		{"a child without keys", with(func(j *Job) { j.Children = []Child{{Claim: Claim{Epoch: 3}, Proof: r.Proof}} }), CodeBadChild, 0},
		{"a child without proof", with(func(j *Job) { j.Children = []Child{{Claim: child.Claim}} }), CodeBadLength, 0},
		{"a child with an altered proof", with(func(j *Job) {
			j.Raw, j.Children = nil, []Child{{Claim: child.Claim, Proof: flipBit(child.Proof, 9)}}
		}), CodeBadChild, 0},
	} {
		var refused *RefusedError
		_, err := p.Prove(t.Context(), c.job)
		require.ErrorAs(t, err, &refused, c.name)
		require.Equal(t, c.code, refused.Code, c.name)
		require.Equal(t, c.index, refused.Index, c.name)
		require.NotErrorIs(t, err, ErrUnavailable, c.name)
	}
	// Two passes over every small shape: nothing crashes, and all of it is served by the first child.
	pid := p.Stats().PID
	for range 2 {
		for raw := range 5 {
			for children := range 4 {
				j := fakeJob(faultNone, raw)
				for i := range children {
					leaf := Job{Message: j.Message, Epoch: j.Epoch, Raw: []Raw{fakeRaw(10+i, j.Message, j.Epoch)}}
					r, err := p.Prove(t.Context(), leaf)
					require.NoError(t, err)
					j.Children = append(j.Children, Child{Claim: leaf.Claim(), Proof: r.Proof})
				}
				_, err := p.Prove(t.Context(), j)
				if raw+children == 0 {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
				}
			}
		}
	}
	require.Equal(t, pid, p.Stats().PID)
}

// Every fault of a child during a job: the job ends with its reason, the child is replaced where it must be, and the
// next job is served.
func TestFaultsDuringAJob(t *testing.T) {
	t.Parallel()
	crash := func(s syscall.Signal, exit int) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			var e *CrashError
			require.ErrorAs(t, err, &e)
			require.Equal(t, s, e.Signal)
			require.Equal(t, exit, e.Exit)
			require.ErrorIs(t, err, ErrCrashed)
		}
	}
	is := func(targets ...error) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			for _, target := range targets {
				require.ErrorIs(t, err, target)
			}
		}
	}
	for _, c := range []struct {
		name     string
		fault    byte
		timeout  time.Duration // of the job; a minute where zero
		stuck    time.Duration
		grace    time.Duration
		want     func(*testing.T, error)
		survives bool
	}{
		{name: "garbage frame", fault: faultGarbage, want: is(ErrProtocol)},
		{name: "oversize frame", fault: faultOversize, want: is(ErrProtocol)},
		{name: "an answer of another kind", fault: faultWrongKind, want: is(ErrProtocol)},
		{name: "an answer to no question", fault: faultUnknownID, want: is(ErrProtocol)},
		{name: "started twice", fault: faultTwoResults, want: is(ErrProtocol)},
		{name: "a result that does not decode", fault: faultShortResult, want: is(ErrProtocol)},
		{name: "an error that does not decode", fault: faultUndecodable, want: is(ErrProtocol)},
		{name: "crash by SIGSEGV", fault: faultSegv, want: crash(syscall.SIGSEGV, 0)},
		{name: "crash by SIGABRT", fault: faultAbort, want: crash(syscall.SIGABRT, 0)},
		{name: "crash by SIGKILL", fault: faultKill, want: crash(syscall.SIGKILL, 0)},
		{name: "crash in the middle of a frame", fault: faultHalfFrame, want: crash(syscall.SIGKILL, 0)},
		{name: "exit", fault: faultExit, want: func(t *testing.T, err error) {
			crash(0, 9)(t, err)
			require.ErrorContains(t, err, "arena exhausted")
		}},
		{name: "correct but late", fault: faultLate, timeout: 50 * time.Millisecond, grace: 200 * time.Millisecond, want: is(ErrTimeout, context.DeadlineExceeded)},
		{name: "ignores SIGTERM", fault: faultIgnoreTerm, timeout: 50 * time.Millisecond, grace: 20 * time.Millisecond, want: is(ErrTimeout)},
		{name: "never answers", fault: faultHang, timeout: 50 * time.Millisecond, want: is(ErrTimeout)},
		{name: "busy past its deadline", fault: faultBusy, timeout: 200 * time.Millisecond, want: is(ErrTimeout)},
		{name: "stops reading", fault: faultStopReading, timeout: 50 * time.Millisecond, want: is(ErrTimeout)},
		{name: "stopped, and killed as stuck long before its deadline", fault: faultStop, stuck: 100 * time.Millisecond, grace: 20 * time.Millisecond, want: is(ErrStuck)},
		{name: "no CPU, and killed as stuck long before its deadline", fault: faultHang, stuck: 100 * time.Millisecond, want: is(ErrStuck)},
		{name: "closes its pipe", fault: faultClosePipe, grace: 20 * time.Millisecond, want: is(ErrProtocol)},
		{name: "stderr flood", fault: faultFlood, survives: true},
		{name: "other claims", fault: faultOtherClaims, want: is(ErrClaimMismatch), survives: true},
		{name: "claims of another kind", fault: faultForeign, want: is(ErrClaimMismatch), survives: true},
		{name: "an empty proof", fault: faultEmptyProof, want: is(ErrClaimMismatch), survives: true},
		{name: "a refusal", fault: faultRefuse, want: func(t *testing.T, err error) {
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, CodeInternal, refused.Code)
		}, survives: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := fakeConfig(RoleProve, modeGood)
			cfg.StuckAfter = max(cfg.StuckAfter, c.timeout)
			if c.stuck > 0 {
				cfg.StuckAfter = c.stuck
			}
			if c.grace > 0 {
				cfg.StopGrace = c.grace
			}
			p := start(t, cfg)
			waitReady(t, p)
			pid := p.Stats().PID
			timeout := c.timeout
			if timeout == 0 {
				timeout = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := p.Prove(ctx, fakeJob(c.fault, 2))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				c.want(t, err)
			}
			require.Equal(t, !c.survives, errors.Is(err, ErrUnavailable))
			waitReady(t, p)
			_, err = p.Prove(t.Context(), fakeJob(faultNone, 2))
			require.NoError(t, err)
			if c.survives {
				require.Equal(t, pid, p.Stats().PID)
				return
			}
			require.NotEqual(t, pid, p.Stats().PID)
			require.True(t, isGone(pid), "the old process is reaped")
			require.Error(t, p.Stats().LastError)
			require.Equal(t, uint64(1), p.Stats().Restarts)
		})
	}
}

// A crash right after the answer loses neither the answer nor the next job.
func TestACrashAfterTheResultKeepsTheResult(t *testing.T) {
	t.Parallel()
	p := start(t, fakeConfig(RoleProve, modeGood))
	for range 5 {
		waitReady(t, p)
		pid := p.Stats().PID
		r, err := p.Prove(t.Context(), fakeJob(faultAfterResult, 2))
		require.NoError(t, err)
		require.NotEmpty(t, r.Proof)
		require.Eventually(t, func() bool { return p.Stats().PID != pid }, time.Minute, time.Millisecond)
	}
	require.ErrorIs(t, p.Stats().LastError, ErrCrashed)
}

// A child that fails at hello never serves; where no restart heals it, Run ends with the reason.
func TestFaultsAtHello(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode      string
		role      Role
		permanent bool
		timeout   time.Duration
		want      error
		text      string
	}{
		{mode: modeExit, role: RoleProve, want: ErrCrashed, text: "no such backend"},
		{mode: modeCrashAtStart, role: RoleVerify, want: ErrCrashed, text: "segmentation"},
		{mode: modeSilent, role: RoleVerify, timeout: 100 * time.Millisecond, want: ErrTimeout},
		{mode: modeGarbage, role: RoleVerify, want: ErrProtocol},
		{mode: modeNoProver, role: RoleVerify, want: ErrProtocol},
		{mode: modeOldVersion, role: RoleProve, permanent: true, text: "version 0"},
		{mode: modeOtherScheme, role: RoleVerify, permanent: true, want: ErrSchemeMismatch},
		{mode: modeYes, role: RoleVerify, permanent: true, want: ErrSchemeMismatch, text: "one bit changed"},
		{mode: modeNo, role: RoleVerify, permanent: true, want: ErrSchemeMismatch, text: "sound signature"},
		{mode: modeUnchecked, role: RoleVerify, permanent: true, want: ErrSchemeMismatch, text: "none of its own"},
		{mode: modeKeySize, role: RoleProve, permanent: true, want: ErrSchemeMismatch, text: "52 bytes"},
		{mode: modeCPU, role: RoleProve, permanent: true, text: "lacks avx2"},
		{mode: modeHelloBadProof, role: RoleProve, want: ErrClaimMismatch},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			cfg := fakeConfig(c.role, c.mode)
			if c.timeout > 0 {
				cfg.HelloTimeout = c.timeout
			}
			client, err := New(cfg)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- client.Run(ctx) }()
			if !c.permanent {
				require.Eventually(t, func() bool { return client.Stats().Restarts >= 1 }, time.Minute, 5*time.Millisecond)
				err = client.Stats().LastError
				require.False(t, client.Ready())
				_, callErr := client.check(t.Context(), "verify", kindVerify, Claim{}, []byte{1}, func(*result) error { return nil })
				require.ErrorIs(t, callErr, ErrUnavailable)
				cancel()
				require.NoError(t, <-done)
			} else {
				err = <-done
				require.ErrorIs(t, client.WaitReady(t.Context()), ErrUnavailable)
			}
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.Contains(t, strings.ToLower(err.Error()), c.text)
		})
	}
}

func TestACommandThatDoesNotExistEndsRun(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Command = []string{filepath.Join(t.TempDir(), "nothing")}
	c, err := New(cfg)
	require.NoError(t, err)
	require.ErrorIs(t, c.Run(t.Context()), os.ErrNotExist)
}

// A grandchild outside the process group holds every pipe of a child that dies: reaping must not wait for it.
func TestAGrandchildWithThePipesDoesNotHoldTheReaping(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	cfg := fakeConfig(RoleProve, modeGood)
	cfg.Env = append(cfg.Env, fakeFIFO+"="+fifo)
	cfg.StopGrace = 50 * time.Millisecond
	p := start(t, cfg)
	waitReady(t, p)
	pid := p.Stats().PID
	_, err := p.Prove(t.Context(), fakeJob(faultGrandchild, 2))
	require.ErrorIs(t, err, ErrCrashed)
	waitReady(t, p)
	require.True(t, isGone(pid))
	_, err = p.Prove(t.Context(), fakeJob(faultNone, 2))
	require.NoError(t, err)
	// The grandchild was alive all the while: opening its FIFO for writing without waiting needs a reader.
	require.Eventually(t, func() bool {
		w, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return false
		}
		return w.Close() == nil
	}, time.Minute, 10*time.Millisecond)
}

// A proof that kills or hangs a verifier takes no sound check with it, and the spare serves at once.
func TestVerifyBesideACulprit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   byte
		timeout time.Duration
		want    error
	}{
		{"that crashes the child", faultKill, time.Minute, ErrCrashed},
		{"that breaks the protocol", faultGarbage, time.Minute, ErrProtocol},
		{"that hangs", faultHang, 3 * time.Second, ErrTimeout},
		{"that stops the child", faultStop, 3 * time.Second, ErrTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := fakeConfig(RoleVerify, modeGood)
			cfg.Calls, cfg.Spare, cfg.CallTimeout, cfg.StopGrace = 4, true, c.timeout, 20*time.Millisecond
			v := start(t, cfg)
			waitReady(t, v)
			require.Eventually(t, func() bool { return v.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)

			job := fakeJob(faultNone, 2)
			proof := fakeProof(fakeEntries(job.Claim()))
			bad := job.Claim()
			bad.Message[0] = c.fault
			var wg sync.WaitGroup
			var badErr error
			wg.Go(func() { badErr = v.Verify(t.Context(), bad, proof) })
			for range 8 {
				wg.Go(func() {
					err := v.Verify(t.Context(), job.Claim(), proof)
					// Where all of a child stops, the first check whose time is over counts as the one at fault.
					if err != nil && !(c.fault == faultStop && errors.Is(err, ErrTimeout)) {
						t.Errorf("a sound proof: %v", err)
					}
				})
			}
			wg.Wait()
			require.ErrorIs(t, badErr, ErrUnavailable)
			require.ErrorIs(t, badErr, c.want)
			waitReady(t, v)
			require.NoError(t, v.Verify(t.Context(), job.Claim(), proof))
		})
	}
}

func TestTheSpareTakesOver(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleVerify, modeGood)
	cfg.Spare = true
	v := start(t, cfg)
	require.Eventually(t, func() bool { return v.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
	before := v.Stats()
	bad := fakeJob(faultKill, 1).claim()
	require.ErrorIs(t, v.Verify(t.Context(), bad, fakeProof(fakeEntries(bad))), ErrCrashed)
	require.True(t, v.Ready(), "no moment without a child")
	require.Equal(t, before.SparePID, v.Stats().PID)
	good := fakeJob(faultNone, 1).claim()
	require.NoError(t, v.Verify(t.Context(), good, fakeProof(fakeEntries(good))))
	require.Eventually(t, func() bool { return v.Stats().SparePID != 0 }, time.Minute, 5*time.Millisecond)
}

func (j Job) claim() Claim { return j.Claim() }

func TestACheckThatNobodyWaitsForIsStillTimed(t *testing.T) {
	t.Parallel()
	cfg := fakeConfig(RoleVerify, modeGood)
	cfg.CallTimeout = 300 * time.Millisecond
	v := start(t, cfg)
	waitReady(t, v)
	pid := v.Stats().PID
	bad := fakeJob(faultHang, 1).claim()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, v.Verify(ctx, bad, fakeProof(fakeEntries(bad))), ErrUnavailable)
	require.Eventually(t, func() bool { return v.Stats().LastError != nil }, time.Minute, 5*time.Millisecond)
	require.ErrorIs(t, v.Stats().LastError, ErrTimeout)
	require.True(t, isGone(pid))
}

func TestACancelledJobLeavesNoChildAndTheNextIsServed(t *testing.T) {
	t.Parallel()
	p := start(t, fakeConfig(RoleProve, modeGood))
	waitReady(t, p)
	pid := p.Stats().PID
	ctx, cancel := context.WithCancelCause(t.Context())
	superseded := errors.New("superseded")
	done := make(chan error, 1)
	go func() {
		_, err := p.Prove(ctx, fakeJob(faultBusy, 1))
		done <- err
	}()
	require.Eventually(t, func() bool { return p.Stats().Running == 1 }, time.Minute, time.Millisecond)
	cancel(superseded)
	err := <-done
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, superseded)
	require.NotErrorIs(t, err, ErrTimeout)
	require.Eventually(t, func() bool { return isGone(pid) }, time.Minute, 5*time.Millisecond)
	waitReady(t, p)
	_, err = p.Prove(t.Context(), fakeJob(faultNone, 1))
	require.NoError(t, err)
}
