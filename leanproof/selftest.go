package leanproof

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
)

// ErrSelfTest says that a verifier does not work on this machine or in this build: it refused a genuine proof, or accepted an
// altered one. Such a verifier must not be used.
var ErrSelfTest = errors.New("the proof verifier fails its self-test")

// genuineProof is a proof of two signatures, made by the prover of the embedded key.
//
//go:embed testdata/proofs/two.bin
var genuineProof []byte

// SelfTest checks an embedded genuine proof, and twenty copies of it with one bit changed: in the claims, the deferred point,
// the proof words, the opened rows and the siblings of each tree. It takes the time of some ten checks. The error is
// ErrSelfTest or that of ctx.
func (v *Verifier) SelfTest(ctx context.Context) error {
	proof := slices.Clone(genuineProof)
	var p parts
	if err := p.decode(proof); err != nil {
		return fmt.Errorf("%w: embedded proof: %w", ErrSelfTest, err)
	}
	if err := v.Verify(ctx, proof, p.claims()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: embedded proof: %w", ErrSelfTest, err)
	}

	// Where the bits are changed: p aliases proof.
	places := [][]byte{p.xmss[:1], p.xmss[len(p.xmss)-1:], p.point[:1]}
	for i := range selfTestWords {
		places = append(places, p.words[(2*i+1)*len(p.words)/(2*selfTestWords):])
	}
	for i := range p.depth {
		places = append(places, p.levels[i].row(p.levels[i].count/2), p.levels[i].siblings)
	}
	for i, place := range places {
		place[0] ^= 1 << (i % 8)
		_, err := v.Check(ctx, proof)
		place[0] ^= 1 << (i % 8)
		var refusal Refusal
		switch {
		case err == nil:
			return fmt.Errorf("%w: edit %d was accepted", ErrSelfTest, i)
		case !errors.As(err, &refusal):
			return err
		}
	}
	return nil
}

// selfTestWords is how many of the edits change proof words.
const selfTestWords = 9
