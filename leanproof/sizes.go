package leanproof

import (
	"math/bits"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

const (
	announcedWords = 10 // memory size, six row counts, inverse rate, two halves of the root
	maxLogMemory   = 32
	maxTableHeight = 28
	maxInverseRate = 4 // log: 1/16

	rowLog          = 6 // a row of the first tree has 2^6 words
	maxRowWords     = 1 << rowLog
	maxTreeDepth    = 26 // of the code for 2^28 words at rate 1/16
	maxCommittedLog = 28 // of the largest code; no block or column is longer
	maxBusDepth     = 32 // bound of scratch arrays; the committed size keeps the products below it

	alphaBits = key.ProgramVars - key.ProgramLog // log of the coordinates of a bus entry
)

// digest is a Keccak-256 digest as little-endian words.
type digest [4]uint64

// sizes is what the ten announced words say, and all lengths that follow from it.
type sizes struct {
	rows     [key.Tables]uint64
	heights  [2 + key.Tables]int // 0, log of the memory, log of each table's padded rows: what key.Height.Log wants
	root     digest              // of the committed polynomial's code
	busDepth int                 // layers of the grand products
	rounds   int                 // of the table sumcheck: the largest height
	placed   uint64              // committed words
	codeLog  int                 // log of the committed words, padded
	width    int                 // words a row of the first level: what is placed, without the zeros in front
	ladder   *key.Ladder
}

// table is the log of a table's padded rows.
func (s *sizes) table(i int) int { return s.heights[2+i] }

func (s *sizes) log(h key.Height) int { return h.Log(s.heights[:]) }

// checkSizes is the stage "sizes". It reads the ten announced words and refuses every length in the proof that is not the one
// that follows from them. It assumes that p was decoded; it hashes and allocates nothing.
func (s *sizes) checkSizes(p *parts) error {
	*s = sizes{}
	count := len(p.words) / elementSize
	if count < announcedWords {
		return StreamLength
	}
	for i := range announcedWords - 2 {
		if !element(p.words, i).InBase() {
			return HighLimb
		}
	}
	number := func(i int) uint64 { return element(p.words, i).C0 }

	memory := number(0)
	if memory < key.MinLogMemory || memory > maxLogMemory {
		return AnnouncedSize
	}
	s.heights[1] = int(memory)
	for i := range s.rows {
		s.rows[i] = number(1 + i)
		if s.rows[i] == 0 || s.rows[i] > 1<<maxTableHeight {
			return AnnouncedSize
		}
		s.heights[2+i] = max(logCeil(s.rows[i]), int(key.FloorLogs[i]))
		s.rounds = max(s.rounds, s.table(i))
	}
	rate := number(7)
	if rate < 1 || rate > maxInverseRate {
		return InverseRate
	}

	for _, h := range key.Columns {
		s.placed += 1 << s.log(h)
	}
	s.codeLog = logCeil(s.placed)
	s.ladder = key.LadderFor(int(rate), s.codeLog)
	if s.ladder == nil {
		return CommittedSize
	}
	s.width = int((s.placed-1)>>(s.codeLog-rowLog)) + 1
	var leaves uint64
	for i := range key.Blocks[key.Push] {
		leaves += 1 << s.log(key.Blocks[key.Push][i].Height)
	}
	s.busDepth = logCeil(leaves)
	if s.busDepth > maxBusDepth {
		return CommittedSize
	}

	if count != s.wordCount() {
		return StreamLength
	}
	if err := s.checkRows(p); err != nil {
		return err
	}
	root := [2]gf.E{element(p.words, 8), element(p.words, 9)}
	if root[0].C2|root[1].C2 != 0 {
		return DigestHalf
	}
	s.root = digest{root[0].C0, root[0].C1, root[1].C0, root[1].C1}
	return nil
}

// keccakPacks is the log of the packs of executions in the KECCAK table.
func (s *sizes) keccakPacks() int { return s.table(key.TableKECCAK) - keccakPackLog }

// keccakRounds is the number of variables that a layer of the KECCAK table has for packs and segments.
func (s *sizes) keccakRounds() int { return s.keccakPacks() + key.KeccakSegmentLog }

// wordCount is the number of proof words of a proof of these sizes.
func (s *sizes) wordCount() int {
	n := announcedWords

	n += 2 // the two products, then rounds of 4 words for each variable so far and the children of three trees
	for left, point := s.busDepth, 0; left > 0; {
		step := productStep(left)
		n += 4*point + 3<<step
		point += step
		left -= step
	}
	n += key.BusClaims

	n += 3*s.rounds + key.ColumnValues

	n++ // claim on the outputs, then layers: product, rounds, the factors of chi
	n += key.KeccakDepth * (key.KeccakProductBits + 2*s.keccakRounds() + 3*keccakLocalBits + 3)
	n += 2*key.KeccakSlotLog + 1                        // opening of the outputs
	n += 2*(keccakPackLog+key.KeccakSlotLog) + laneBits // of the inputs

	n += 2 // first polynomial of the opening, then levels: folds, root and sample or message in clear, nonce, rows
	for i := range s.ladder.Levels {
		n += 2*int(s.ladder.Levels[i].Folds) + 1 + 2
		if i < len(s.ladder.Levels)-1 {
			n += 2 + 3*int(s.ladder.Levels[i+1].Samples)
		}
	}
	tail := int(s.ladder.LogTail)
	return n + 1<<tail + 2*(tail-1)
}

// checkRows refuses opened rows that the ladder does not call for. How many rows a level has depends on which of its query
// positions meet, and is known later: here it is bounded.
func (s *sizes) checkRows(p *parts) error {
	if p.depth != len(s.ladder.Levels) {
		return MerkleShape
	}
	for i := range s.ladder.Levels {
		l, o := &s.ladder.Levels[i], &p.levels[i]
		width := 3 << l.Folds
		if i == 0 {
			width = s.width
		}
		if o.count == 0 || o.count > int(l.Queries) || o.width != width || len(o.siblings) > o.count*int(l.LogDomain)*digestSize {
			return MerkleShape
		}
	}
	return nil
}

// logCeil returns the least l with 2^l >= n, for n > 0.
func logCeil(n uint64) int { return bits.Len64(n - 1) }
