package leanproof

import (
	"context"
	"fmt"
	"sync"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// maxBatch is how many proofs share one pass over the guest's table; longer batches go in parts. The scratch memory of so
// many checks is about 1 MiB.
const maxBatch = 16

// Verifier checks proofs of one version of the prover. It is immutable but for pooled scratch memory: any number of goroutines
// may use it, each check on the caller's.
type Verifier struct {
	key     *key.Key
	seed    digest
	scratch sync.Pool // of *check
}

// New returns a verifier for the newest version of the prover that is embedded. The first call takes tens of milliseconds and
// some 14 MiB, which all verifiers share. An error means a damaged binary.
func New() (*Verifier, error) {
	k, err := key.Load()
	if err != nil {
		return nil, fmt.Errorf("open verifier: %w", err)
	}
	v := &Verifier{key: k, scratch: sync.Pool{New: func() any { return new(check) }}}
	for i := range v.seed {
		v.seed[i] = word(k.Seed[:], i)
	}
	return v, nil
}

// Prover names the version whose proofs the verifier accepts.
func (v *Verifier) Prover() string { return v.key.Prover }

// Seed identifies that version: the transcript of every proof starts with it.
func (v *Verifier) Seed() [32]byte { return v.key.Seed }

// shared is the verifier of Verify.
var shared = sync.OnceValues(New)

// Verify checks with a verifier that all its calls share that proof proves exactly the claims want. See Verifier.Verify.
func Verify(proof []byte, want Claims) error {
	v, err := shared()
	if err != nil {
		return err
	}
	return v.Verify(context.Background(), proof, want)
}

// Verify accepts proof, with nil, when it proves exactly the claims want: the leanXMSS claims in ascending order, and nothing
// else. A proof that also makes a claim of leanSPHINCS or speaks of data availability is refused, whatever it proves.
//
// The error is a Refusal, or that of ctx, which is looked at between stages. proof has any length and is not trusted; it must
// not change during the call, and nothing of it is kept. A check takes some milliseconds and does not allocate.
func (v *Verifier) Verify(ctx context.Context, proof []byte, want Claims) error {
	c := v.take()
	defer v.put(c)
	c.begin(proof, &want)
	v.run(ctx, []*check{c})
	return c.err
}

// Check accepts proof, with the claims it makes, when it proves them: of either scheme, and whatever they are. The error is as
// Verify's.
func (v *Verifier) Check(ctx context.Context, proof []byte) (Claims, error) {
	c := v.take()
	defer v.put(c)
	c.begin(proof, nil)
	v.run(ctx, []*check{c})
	if c.err != nil {
		return Claims{}, c.err
	}
	return c.parts.claims(), nil
}

// Item is a proof of a batch and the claims that it must make.
type Item struct {
	Proof []byte
	Want  Claims
}

// VerifyBatch verifies each item as Verify does and returns an error, or nil, for each: one item's fault does not touch the
// others. The proofs of a batch, up to 16 at a time, share the pass over the guest's table, which is a good part of a check.
func (v *Verifier) VerifyBatch(ctx context.Context, items []Item) []error {
	errs := make([]error, len(items))
	var checks [maxBatch]*check
	for start := 0; start < len(items); start += maxBatch {
		part := items[start:min(start+maxBatch, len(items))]
		for i := range part {
			checks[i] = v.take()
			checks[i].begin(part[i].Proof, &part[i].Want)
		}
		v.run(ctx, checks[:len(part)])
		for i, c := range checks[:len(part)] {
			errs[start+i] = c.err
			v.put(c)
		}
	}
	return errs
}

func (v *Verifier) take() *check { return v.scratch.Get().(*check) }

// put gives scratch memory back, without the proof that it was used for.
func (v *Verifier) put(c *check) {
	c.parts = parts{}
	v.scratch.Put(c)
}

// run takes proofs that have begun through all stages and leaves a verdict in each. The table is evaluated once before and once
// after the stages that have a transcript, for all proofs together: at the deferred points, whose values the transcripts start
// with, and at the points at which the proofs need its value.
func (v *Verifier) run(ctx context.Context, checks []*check) {
	var table tableBatch
	for _, c := range checks {
		c.deferred = gf.E{}
		if c.isLive(ctx) && !c.defersNothing() {
			table.add(c, c.deferredPoint())
		}
	}
	for i, c := range table.evaluate(v.key) {
		c.deferred = table.values[i]
		c.times.lap(StageTable)
	}
	for _, c := range checks {
		if c.err == nil {
			c.err = c.transcript(ctx, v.seed)
		}
	}
	table.len = 0
	for _, c := range checks {
		if c.isLive(ctx) {
			table.add(c, c.tablePoint())
		}
	}
	for i, c := range table.evaluate(v.key) {
		c.err = c.tableValue(table.values[i])
		c.times.lap(StageTable)
	}
}

// isLive reports whether the proof was not refused so far; it is refused when ctx has ended.
func (c *check) isLive(ctx context.Context) bool {
	if c.err == nil {
		c.err = ctx.Err()
	}
	return c.err == nil
}
