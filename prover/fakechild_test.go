package prover

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The fake child: this test binary run again with fakeMode set. It speaks the protocol with a toy scheme, in which a
// signature is a hash of key, message and epoch, and a proof lists its claims and ends with a hash. What goes wrong is
// chosen at start by fakeMode and, for faults during a job, by the first byte of the job's message.
const (
	fakeMode   = "AGGNODE_TEST_FAKE_PROVER"
	fakeFIFO   = "AGGNODE_TEST_FAKE_FIFO" // see modeGrandchild
	fakeScheme = "toy"
	fakeSig    = 40
)

// Modes of the fake.
const (
	modeGood          = "good"
	modeExit          = "exit before hello"
	modeOldVersion    = "wrong version"
	modeSilent        = "silent"
	modeGarbage       = "garbage before hello"
	modeNoProver      = "no prover at all"
	modeOtherScheme   = "other scheme"
	modeYes           = "accepts every known answer"
	modeNo            = "refuses every known answer"
	modeUnchecked     = "has checked no proof of its own"
	modeCPU           = "cpu unsupported"
	modeKeySize       = "other key size"
	modeHelloBadProof = "proves something else at hello"
	modeIgnoreEnd     = "ignores the end of its input"
	modeHold          = "holds pipes" // not a child: the grandchild of modeGood
	modeNode          = "node"        // not a child: a parent for the kill -9 test
	modeSlow          = "each proof takes 100 ms of CPU"
	modeCrashAtStart  = "crash during set-up"
	modeListsNoClaims = "proofs list no claims"
)

// Faults of a job or a check, the first byte of its message.
const (
	faultNone byte = iota
	faultGarbage
	faultOversize
	faultWrongKind
	faultUnknownID
	faultTwoResults
	faultShortResult
	faultSegv
	faultAbort
	faultKill
	faultExit
	faultLate
	faultIgnoreTerm
	faultFlood
	faultStopReading
	faultGrandchild
	faultStop
	faultOtherClaims
	faultForeign
	faultEmptyProof
	faultBusy
	faultHang
	faultClosePipe
	faultHalfFrame
	faultRefuse
	faultUndecodable
	faultAfterResult
	faultEat
)

// eaten is what a job with faultEat keeps for good, in bytes.
const eaten = 96 << 20

func fakeSign(key []byte, message [MessageSize]byte, epoch uint32) []byte {
	h := sha256.New()
	h.Write(key)
	h.Write(message[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, epoch))
	return append(h.Sum(nil), "fakesig!"...)
}

// fakeKey is the i-th key of the toy scheme.
func fakeKey(i int) []byte {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("key"), uint64(i)))
	return sum[:]
}

func fakeRaw(i int, message [MessageSize]byte, epoch uint32) Raw {
	return Raw{PublicKey: fakeKey(i), Signature: fakeSign(fakeKey(i), message, epoch)}
}

// fakeProof is entries, then a hash over them.
func fakeProof(entries []byte) []byte {
	sum := sha256.Sum256(entries)
	return append(bytes.Clone(entries), sum[:]...)
}

func fakeEntries(c Claim) []byte {
	var b []byte
	for i := range c.Signers() {
		b = append(append(b, c.Key(i)...), c.Message[:]...)
	}
	return b
}

func fakeCheck(proof []byte) (entries []byte, ok bool) {
	n := len(proof) - sha256.Size
	if n <= 0 || n%entrySize != 0 {
		return nil, false
	}
	sum := sha256.Sum256(proof[:n])
	return proof[:n], bytes.Equal(sum[:], proof[n:])
}

type fakeChild struct {
	mode    string
	in, out *os.File
	mu      sync.Mutex
	hello   hello
	term    chan os.Signal
	kept    [][]byte // see faultEat
}

func runFake(mode string) {
	c := &fakeChild{mode: mode, in: os.NewFile(3, "in"), out: os.NewFile(4, "out"), term: make(chan os.Signal, 1)}
	switch mode {
	case modeExit:
		os.Stderr.WriteString("no such backend\n")
		os.Exit(7)
	case modeGarbage:
		c.out.Write(bytes.Repeat([]byte("hello there "), 10))
	}
	for {
		f, err := readFrame(c.in, false, nil)
		if err != nil {
			if mode == modeIgnoreEnd {
				select {}
			}
			if err.Error() == "EOF" {
				os.Exit(0)
			}
			os.Exit(3)
		}
		c.serve(f)
	}
}

func (c *fakeChild) write(k kind, id uint64, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Write(appendFrame(nil, frame{kind: k, id: id, body: body}))
}

func (c *fakeChild) refuse(id uint64, code Code, index int, text string) {
	c.write(kindError, id, appendRefusal(nil, &RefusedError{code, index, text}))
}

func (c *fakeChild) serve(f frame) {
	switch f.kind {
	case kindHello:
		c.greet(f)
	case kindPing:
		c.write(kindPong, f.id, f.body)
	case kindProve:
		_, job, err := decodeJob(f.body)
		switch {
		case err != nil:
			c.refuse(f.id, CodeBadFrame, -1, err.Error())
		case c.hello.role != RoleProve:
			c.refuse(f.id, CodeUnsupported, -1, "a verifier")
		default:
			c.write(kindStarted, f.id, nil)
			if !c.misbehave(f.id, job.Message[0]) {
				c.prove(f.id, job)
			}
		}
	case kindVerify, kindInspect:
		r, err := decodeRequest(f.body)
		switch {
		case err != nil:
			c.refuse(f.id, CodeBadFrame, -1, err.Error())
		case f.kind == kindInspect && c.mode == modeListsNoClaims:
			c.refuse(f.id, CodeUnsupported, -1, "no claims listed")
		default:
			go c.verify(f, r)
		}
	case kindSample:
		r, err := decodeSampleRequest(f.body)
		if err != nil || r.count > 8 {
			c.refuse(f.id, CodeUnsupported, -1, "samples")
			return
		}
		raws := make([]Raw, r.count)
		for i := range raws {
			raws[i] = fakeRaw(i, r.message, r.epoch)
		}
		c.write(kindSamples, f.id, appendRaws(nil, fakeSig, raws))
	case kindBye:
		c.write(kindGone, f.id, nil)
		os.Exit(0)
	}
}

func (c *fakeChild) greet(f frame) {
	h, err := decodeHello(f.body)
	if err != nil {
		os.Exit(4)
	}
	c.hello = h
	r := ready{version: protocolVersion, ownAccepted: 1, ownRefused: 1, caps: Capabilities{
		Backend: "fake", Revision: "1", Scheme: fakeScheme, PublicKeySize: PublicKeySize, SignatureSize: fakeSig,
		MaxChildren: 4, MaxRaw: 64, MinInputs: 1, ProofBytesMax: 1 << 20, Threads: 1, ClaimsInProof: c.mode != modeListsNoClaims,
		Samples: true, SetupMemory: 1 << 20, ProveMemory: 1 << 20, MemoryPerRaw: 1 << 10, MemoryPerChild: 1 << 20,
	}}
	for range h.known {
		v := verdictSkipped
		switch c.mode {
		case modeYes:
			v = verdictAccepted
		case modeNo:
			v = verdictRefused
		}
		r.verdicts = append(r.verdicts, v)
	}
	switch c.mode {
	case modeSilent:
		return
	case modeCrashAtStart:
		c.die(syscall.SIGSEGV)
	case modeOldVersion:
		r.version = 0
	case modeNoProver:
		c.out.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		return
	case modeOtherScheme:
		r.caps.Scheme = "keccak"
	case modeYes, modeNo:
		r.caps.Scheme, r.caps.SignatureSize = "keccak", 2404
	case modeUnchecked:
		r.ownRefused = 0
	case modeKeySize:
		r.caps.PublicKeySize = 52
	case modeCPU:
		c.refuse(f.id, CodeCPUUnsupported, -1, "this processor lacks avx2")
		return
	}
	c.write(kindStarted, f.id, nil)
	c.write(kindReady, f.id, r.append(nil))
}

func (c *fakeChild) prove(id uint64, job Job) {
	for i, r := range job.Raw {
		if !bytes.Equal(r.Signature, fakeSign(r.PublicKey, job.Message, job.Epoch)) {
			code := CodeBadSignature
			if len(r.Signature) != fakeSig {
				code = CodeBadLength
			}
			c.refuse(id, code, i, "does not verify")
			return
		}
	}
	for i, ch := range job.Children {
		entries, ok := fakeCheck(ch.Proof)
		if !ok || !bytes.Equal(entries, fakeEntries(ch.Claim)) {
			c.refuse(id, CodeBadChild, i, "does not verify")
			return
		}
	}
	switch n := len(job.Raw) + len(job.Children); {
	case len(job.Raw) > 64:
		c.refuse(id, CodeTooManyRaw, -1, "limit 64")
		return
	case len(job.Children) > 4:
		c.refuse(id, CodeTooManyChildren, -1, "limit 4")
		return
	case n == 0:
		c.refuse(id, CodeTooFewInputs, -1, "no inputs")
		return
	}
	if c.mode == modeSlow {
		for until := time.Now().Add(100 * time.Millisecond); time.Now().Before(until); {
		}
	}
	entries := fakeEntries(job.Claim())
	if c.mode == modeHelloBadProof {
		entries = entries[:entrySize]
	}
	r := result{cpu: time.Millisecond, wall: time.Millisecond, entries: entries, proof: fakeProof(entries)}
	c.write(kindProgress, id, (&progress{phase: 3, cpu: time.Millisecond, rss: 1 << 20}).append(nil))
	c.write(kindResult, id, r.append(nil))
	if job.Message[0] == faultAfterResult {
		c.die(syscall.SIGABRT)
	}
}

func (c *fakeChild) verify(f frame, r request) {
	c.write(kindStarted, f.id, nil)
	if c.misbehave(f.id, r.claim.Message[0]) {
		return
	}
	entries, ok := fakeCheck(r.proof)
	if !ok {
		c.refuse(f.id, CodeInvalidProof, -1, "the hash differs")
		return
	}
	c.write(kindResult, f.id, (&result{cpu: 3 * time.Millisecond, wall: 4 * time.Millisecond, entries: entries}).append(nil))
}

// misbehave does what the fault asks for and says whether the request is done with.
func (c *fakeChild) misbehave(id uint64, fault byte) bool {
	entries := bytes.Repeat([]byte{9}, entrySize)
	bad := result{entries: entries, proof: fakeProof(entries)}
	switch fault {
	case faultGarbage:
		c.out.Write(bytes.Repeat([]byte{0xa5}, 64))
	case faultOversize:
		c.out.Write([]byte{0xff, 0xff, 0xff, 0xff, byte(kindResult), 0, 0, 0, byte(id), 0, 0, 0, 0, 0, 0, 0})
	case faultWrongKind:
		c.write(kindPong, id, nil)
	case faultUnknownID:
		c.write(kindResult, id+100, bad.append(nil))
	case faultTwoResults:
		c.write(kindStarted, id, nil)
	case faultShortResult:
		c.write(kindResult, id, []byte{1, 2, 3})
	case faultSegv:
		c.die(syscall.SIGSEGV)
	case faultAbort:
		c.die(syscall.SIGABRT)
	case faultKill:
		c.die(syscall.SIGKILL)
	case faultExit:
		os.Stderr.WriteString("panic: arena exhausted\n")
		os.Exit(9)
	case faultLate: // a right answer, after SIGTERM
		signal.Notify(c.term, syscall.SIGTERM)
		<-c.term
		return false
	case faultIgnoreTerm:
		signal.Ignore(syscall.SIGTERM)
	case faultFlood:
		line := append(bytes.Repeat([]byte("flood "), 200), '\n')
		for range 2000 {
			os.Stderr.Write(line)
		}
		return false
	case faultStopReading:
		select {}
	case faultGrandchild:
		c.spawn()
		c.die(syscall.SIGKILL)
	case faultStop:
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case faultOtherClaims:
		c.write(kindResult, id, bad.append(nil))
	case faultForeign, faultEmptyProof:
		return c.almost(id, fault)
	case faultBusy:
		go c.burn(id)
	case faultHang: // never answered
	case faultClosePipe:
		c.out.Close()
	case faultHalfFrame:
		whole := appendFrame(nil, frame{kind: kindResult, id: id, body: bad.append(nil)})
		c.out.Write(whole[:len(whole)/2])
		c.die(syscall.SIGKILL)
	case faultRefuse:
		c.refuse(id, CodeInternal, -1, "the library panicked")
	case faultEat:
		c.kept = append(c.kept, bytes.Repeat([]byte{1}, eaten))
		return false
	case faultUndecodable:
		c.write(kindError, id, []byte{1})
	default:
		return false
	}
	return true
}

// almost answers with the keys of fakeRaw(0) and fakeRaw(1), which the fault tests use, and one thing wrong.
func (c *fakeChild) almost(id uint64, fault byte) bool {
	claim := Claim{SignerSet: NewSignerSet([][]byte{fakeKey(0), fakeKey(1)})}
	claim.Message[0] = fault
	r := result{entries: fakeEntries(claim)}
	if fault == faultForeign {
		r.foreign, r.proof = 1, fakeProof(r.entries)
	}
	c.write(kindResult, id, r.append(nil))
	return true
}

// die ends the process by a signal. Go's runtime would turn some of them into a traceback and an exit, so another
// program raises them.
func (c *fakeChild) die(s syscall.Signal) {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // no dump
	syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("kill -%d $$", int(s))}, nil)
	os.Exit(8)
}

// burn uses CPU and says so.
func (c *fakeChild) burn(id uint64) {
	began := time.Now()
	for n := 1; ; n++ {
		for until := time.Now().Add(5 * time.Millisecond); time.Now().Before(until); {
		}
		c.write(kindProgress, id, (&progress{cpu: time.Since(began)}).append(nil))
	}
}

// spawn starts a grandchild outside the process group that inherits all pipes, and waits until it has them.
func (c *fakeChild) spawn() {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{fakeMode + "=" + modeHold, fakeFIFO + "=" + os.Getenv(fakeFIFO)}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{c.in, c.out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		os.Exit(5)
	}
}

// hold keeps what it inherited open until the test opens and closes its FIFO.
func hold() {
	f, err := os.Open(os.Getenv(fakeFIFO))
	if err != nil {
		os.Exit(6)
	}
	f.Read(make([]byte, 1))
	os.Exit(0)
}

// fakeJob is a job of n raw signatures whose message asks for a fault.
func fakeJob(fault byte, n int) Job {
	j := Job{Epoch: 3}
	j.Message[0] = fault
	for i := range n {
		j.Raw = append(j.Raw, fakeRaw(i, j.Message, j.Epoch))
	}
	slices.Reverse(j.Raw)
	return j
}
