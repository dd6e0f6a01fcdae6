package prover

import (
	"bytes"
	"slices"
	"time"
)

const (
	// PublicKeySize is the length in bytes of a public key of every scheme that this protocol carries. Both schemes
	// in use and the older KoalaBear line have 32-byte keys, and the flat signer set of a Claim relies on it.
	PublicKeySize = 32
	// MessageSize is the length in bytes of a signed message: an attestation data root.
	MessageSize = 32
)

// Claim is what a proof asserts: every key of SignerSet signed Message at Epoch.
//
// SignerSet is n*PublicKeySize bytes: the keys in strictly ascending byte order, each once. A Claim is immutable once
// handed to this package: the bytes of SignerSet are shared between goroutines and never written.
type Claim struct {
	Message   [MessageSize]byte
	Epoch     uint32
	SignerSet []byte
}

// Signers returns the number of keys in the signer set.
func (c Claim) Signers() int { return len(c.SignerSet) / PublicKeySize }

// Key returns the i-th key of the signer set, 0 <= i < Signers(), as a view that must not be written.
func (c Claim) Key(i int) []byte {
	return c.SignerSet[i*PublicKeySize : (i+1)*PublicKeySize : (i+1)*PublicKeySize]
}

// Entry is one line that a proof asserts: PublicKey (PublicKeySize bytes) signed Message.
type Entry struct {
	PublicKey []byte
	Message   [MessageSize]byte
}

// Raw is one signature as job input. PublicKey is PublicKeySize bytes, Signature has the length of the scheme
// (Capabilities.SignatureSize). Immutable once handed over.
type Raw struct {
	PublicKey []byte
	Signature []byte
}

// Child is an aggregate consumed by a merge job: a proof together with the claim that it was verified against.
type Child struct {
	Claim Claim
	Proof []byte
}

// Job is the input of one proof: raw signatures over (Message, Epoch) and children over the same message. The order
// of Raw is free; where a RefusedError names an input, it names the position in this slice. Immutable once handed over.
//
// Overdue and CPUMax end a job that runs too long before the deadline of its context: from Overdue on, the child is
// killed once it has used CPUMax of CPU for the job. A job that used less was starved by others, not lost, and a new
// child would need seconds of the same scarce CPU to start. A zero Overdue leaves only the deadline.
type Job struct {
	Message  [MessageSize]byte
	Epoch    uint32
	Raw      []Raw
	Children []Child
	Overdue  time.Time
	CPUMax   time.Duration
}

// Claim returns the claim that a proof of the job must make: the union of the raw keys and of the children's signer
// sets. It allocates one new signer set; cost about 10 us for 1,000 keys.
func (j *Job) Claim() Claim {
	keys := make([][]byte, 0, j.inputKeys())
	for i := range j.Raw {
		keys = append(keys, j.Raw[i].PublicKey)
	}
	for i := range j.Children {
		for k := range j.Children[i].Claim.Signers() {
			keys = append(keys, j.Children[i].Claim.Key(k))
		}
	}
	return Claim{Message: j.Message, Epoch: j.Epoch, SignerSet: NewSignerSet(keys)}
}

func (j *Job) inputKeys() int {
	n := len(j.Raw)
	for i := range j.Children {
		n += j.Children[i].Claim.Signers()
	}
	return n
}

// NewSignerSet builds a signer set from keys of PublicKeySize bytes in any order: sorted, duplicates merged, copied.
// The slice keys itself is reordered.
func NewSignerSet(keys [][]byte) []byte {
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	return slices.Concat(keys...)
}

// Result is a finished proof. CPU is the processor time of the job over all threads, zero where a backend can not
// tell. Wall is measured on the caller's side and includes the transfer. Wait is the part of it before the child had
// begun with the job, zero for a backend without a child.
type Result struct {
	Proof []byte
	Wall  time.Duration
	Wait  time.Duration
	CPU   time.Duration
}

// Capabilities is what a backend says about itself at hello, with the measurements that the client took then.
type Capabilities struct {
	Backend  string // name of the program that proves, "lean-pq" or "bundle"
	Revision string // its version, free text
	Scheme   string // signature scheme: "keccak", "blake2s" or a name that this program does not know

	PublicKeySize int // bytes, always PublicKeySize
	SignatureSize int // bytes
	MaxChildren   int // most children of one job
	MaxRaw        int // most raw signatures of one job
	MaxSigners    int // most keys that a proof covers, children included; 0 is no limit of its own
	MinInputs     int // fewest raw plus children of one job
	ProofBytesMax int // longest proof that the backend makes or checks

	ChildrenMayOverlap bool // children of a job may share keys, with each other and with the raw signatures
	ClaimsInProof      bool // a proof lists its own claims, so Inspect works
	Samples            bool // answers sample frames with signatures of throw-away keys

	SetupMemory    int64 // bytes: peak of the process after set-up, before the first proof
	ProveMemory    int64 // bytes: further peak of a job of few raw signatures
	MemoryPerRaw   int64 // bytes: further peak for each raw signature
	MemoryPerChild int64 // bytes: further peak for each child

	Threads    int           // threads that a proof uses
	HelloProve time.Duration // wall time of the two-signature job proved at hello; zero for a verifier
}

// MemoryNeed estimates the peak memory in bytes of a process that proves jobs of up to raw signatures and children.
func (c Capabilities) MemoryNeed(raw, children int) int64 {
	return c.SetupMemory + c.ProveMemory + int64(raw)*c.MemoryPerRaw + int64(children)*c.MemoryPerChild
}
