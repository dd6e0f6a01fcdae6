package leanproof

import (
	"context"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

// check is one proof on its way through the stages, and their scratch memory: about 60 KiB, reused for the next proof.
// Each stage is a method in a file of its own. A stage reads the proof words in order, and what earlier stages left in
// the fields below.
type check struct {
	parts
	sizes
	sponge sponge
	cursor int // the next proof word

	err   error      // the verdict so far
	times *stopwatch // nil unless the stages are timed

	deferred  gf.E   // the guest's table at the deferred point
	statement digest // the public input of the machine

	alpha        [alphaBits]gf.E      // bus challenge: fingerprint weights are its eq table
	fingerprints [1 << alphaBits]gf.E // weight of each coordinate of a bus entry
	beta         gf.E                 // bus challenge: added to every entry

	leafClaims [key.Sides]gf.E   // value of each side's leaves at zeta
	zeta       [maxBusDepth]gf.E // where the grand products end; busDepth coordinates
	selectors  [key.Sides][maxBlocks]gf.E
	totals     [key.Sides]affine // what the rows of the tables add to each side

	chi       [maxTableHeight]gf.E // where the table sumcheck ends; rounds coordinates
	needed    affine               // table identity: needed.at(value of the guest's table) == evaluated
	evaluated gf.E

	values [len(key.Claims)]gf.E // claimed values of committed columns
	input  gf.E                  // where on the public input's line memory is claimed

	keccakStart  keccakStart
	keccak       keccakClaim
	keccakPoints keccakPoints
	target       ringSwitch
	opening      opening

	// audit is nil but in tests: it is told of every check that does not hold, and its answer true goes on as if it did.
	audit func(r Refusal, difference gf.E) bool
}

// next reads a proof word and takes it into the transcript.
func (c *check) next() gf.E {
	e := c.skim()
	c.sponge.observe(e, tagWord)
	return e
}

func (c *check) nexts(out []gf.E) {
	for i := range out {
		out[i] = c.next()
	}
}

// skim reads a proof word. Behind the last one it reads zeros: the count at the end of the opening then refuses.
func (c *check) skim() gf.E {
	i := c.cursor
	c.cursor++
	if elementSize*(i+1) > len(c.words) {
		return gf.E{}
	}
	return element(c.words, i)
}

// equal refuses with r unless a is b.
func (c *check) equal(a, b gf.E, r Refusal) error {
	if a == b || c.audit != nil && c.audit(r, gf.Add(a, b)) {
		return nil
	}
	return r
}

// holds refuses with r unless ok.
func (c *check) holds(ok bool, r Refusal) error {
	if ok || c.audit != nil && c.audit(r, gf.E{}) {
		return nil
	}
	return r
}

// begin takes a proof apart and refuses what can be refused without hashing. want is nil where any claims will do.
func (c *check) begin(proof []byte, want *Claims) {
	c.err = c.decode(proof)
	c.times.lap(StageDecode)
	if c.err == nil {
		c.err = c.checkSizes(&c.parts)
		c.times.lap(StageSizes)
	}
	if c.err == nil && want != nil {
		c.err = c.checkWanted(want)
	}
	if c.err == nil {
		c.err = c.checkClaims()
		c.times.lap(StageClaims)
	}
}

// transcriptStages are the stages that read the proof words, in order.
var transcriptStages = [...]struct {
	stage Stage
	run   func(*check) error
}{
	{StageProducts, (*check).products},
	{StageLeaves, (*check).leaves},
	{StageTables, (*check).tableSumcheck},
	{StageInput, (*check).publicInput},
	{StageKeccak, (*check).keccakLayers},
	{StageKeccakOpenings, (*check).keccakOpenings},
	{StageRingSwitch, (*check).ringSwitch},
	{StageOpening, (*check).open},
	{StageTerminal, (*check).terminal},
}

// transcript takes a proof that has begun through all stages but the last, with the context's error between them. deferred is
// set.
func (c *check) transcript(ctx context.Context, seed digest) error {
	c.cursor = 0
	c.statement = c.digest(seed, c.deferred)
	c.sponge.start(seed, c.statement)
	for range announcedWords {
		c.next()
	}
	c.times.lap(StageStatement)
	for i := range transcriptStages {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := transcriptStages[i].run(c); err != nil {
			return err
		}
		c.times.lap(transcriptStages[i].stage)
	}
	return nil
}
