package prover

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

var (
	// ErrUnavailable says that the backend gave no answer about the bytes: not ready, died, timed out or stopped. It
	// wraps the cause where there is one. The caller learns nothing about the proof and must not blame its sender.
	ErrUnavailable = errors.New("prover unavailable")
	// ErrTimeout says that the deadline of a call passed; the child was killed. Always together with ErrUnavailable.
	ErrTimeout = errors.New("prover call timed out")
	// ErrStuck says that a job was killed before its deadline because the child used no CPU. Always together with
	// ErrUnavailable.
	ErrStuck = errors.New("prover is stuck")
	// ErrMemory says that the child was killed because it held more than its memory limit. Always together with
	// ErrUnavailable.
	ErrMemory = errors.New("prover exceeded its memory limit")
	// ErrBadProof says that the backend checked the proof and refused it: the bytes are at fault.
	ErrBadProof = errors.New("proof does not verify")
	// ErrClaimMismatch says that a proof is sound but asserts something else than what was asked for.
	ErrClaimMismatch = errors.New("proof makes other claims than expected")
	// ErrSchemeMismatch says that the child is for another signature scheme than the one configured, or disagrees on
	// its known answers.
	ErrSchemeMismatch = errors.New("prover is for another signature scheme")
	// ErrProtocol says that the child sent bytes that are not the protocol; it was killed.
	ErrProtocol = errors.New("prover broke the protocol")
)

// CrashError says that the child ended without being asked to. Exactly one of Signal and Exit explains how: Signal is
// zero after an exit. errors.Is(err, ErrUnavailable) holds for it.
type CrashError struct {
	Exit   int            // exit code
	Signal syscall.Signal // signal that ended it, zero for an exit
	Reason string         // why this program killed it, empty if it did not
	Stderr string         // last lines that it wrote, at most stderrTailBytes
}

// ErrCrashed is the sentinel that every *CrashError matches under errors.Is.
var ErrCrashed = errors.New("prover crashed")

// Error implements error.
func (e *CrashError) Error() string {
	var b strings.Builder
	switch {
	case e.Signal != 0:
		fmt.Fprintf(&b, "prover child ended by signal %d (%s)", int(e.Signal), e.Signal)
	default:
		fmt.Fprintf(&b, "prover child exited with code %d", e.Exit)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	if e.Stderr != "" {
		fmt.Fprintf(&b, "; it wrote: %q", e.Stderr)
	}
	return b.String()
}

// Is matches ErrCrashed and ErrUnavailable.
func (e *CrashError) Is(target error) bool { return target == ErrCrashed || target == ErrUnavailable }

// Code is the kind of a refusal, on the wire a u16.
type Code uint16

// The refusals of the protocol. docs/prover-protocol.md has one row for each.
const (
	CodeUnknown         Code = iota
	CodeInvalidProof         // the proof does not verify or is no proof
	CodeBadSignature         // raw signature Index does not verify, or is for another epoch
	CodeBadChild             // proof of child Index does not verify or does not fit the claim
	CodeBadLength            // a key, message or signature has a wrong length; Index is the input
	CodeTooManyRaw           // more raw signatures than Capabilities.MaxRaw
	CodeTooManyChildren      // more children than Capabilities.MaxChildren
	CodeTooFewInputs         // fewer inputs than Capabilities.MinInputs
	CodeOverlap              // inputs share a key and the backend does not allow it
	CodeBadFrame             // the frame does not decode
	CodeUnsupported          // the child does not do this in its role, or not at all
	CodeVersion              // no common protocol version
	CodeCPUUnsupported       // the processor lacks instructions that the backend needs
	CodeBackendMissing       // the backend's library does not load
	CodeMemory               // out of memory, caught before the process died
	CodeInternal             // any other fault of the child
)

var codeNames = [...]string{
	CodeUnknown: "unknown", CodeInvalidProof: "invalid_proof", CodeBadSignature: "bad_signature",
	CodeBadChild: "bad_child", CodeBadLength: "bad_length", CodeTooManyRaw: "too_many_raw",
	CodeTooManyChildren: "too_many_children", CodeTooFewInputs: "too_few_inputs", CodeOverlap: "overlap",
	CodeBadFrame: "bad_frame", CodeUnsupported: "unsupported", CodeVersion: "version",
	CodeCPUUnsupported: "cpu_unsupported", CodeBackendMissing: "backend_missing", CodeMemory: "memory",
	CodeInternal: "internal",
}

// String returns the snake_case name of the code.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code_%d", uint16(c))
}

// RefusedError says that the backend, or this package before asking it, refused a request as it stands. Index is the
// position of the input at fault in Job.Raw or Job.Children, -1 where none is.
type RefusedError struct {
	Code  Code
	Index int
	Text  string
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Index >= 0 {
		return fmt.Sprintf("prover refused (%s, input %d): %s", e.Code, e.Index, e.Text)
	}
	return fmt.Sprintf("prover refused (%s): %s", e.Code, e.Text)
}

// Is matches ErrBadProof for the code that says so.
func (e *RefusedError) Is(target error) bool {
	return target == ErrBadProof && e.Code == CodeInvalidProof
}

// unavailable is a cause under ErrUnavailable.
func unavailable(cause error) error {
	if cause == nil {
		return ErrUnavailable
	}
	if errors.Is(cause, ErrUnavailable) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
