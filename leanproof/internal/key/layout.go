package key

// Numbers of the machine's tables. The first six have rows of the execution; blocks of the framework belong to none.
const (
	TableXOR = iota
	TableMUL
	TableSET
	TableDEREF
	TableJUMP
	TableKECCAK
	Tables
	Framework = Tables
)

// Sides of the bus: what is pushed, what is pulled, and the counters.
const (
	Push = iota
	Pull
	Count
	Sides
)

// Height says how the logarithm of a height follows from what a proof announces: Of indexes the list
// (0, log of the memory, log heights of the tables 0 to 5), and Add is added to it.
type Height struct{ Of, Add uint8 }

// Log returns the height's logarithm. heights is the list of Height's comment, 2 + Tables long.
func (h Height) Log(heights []int) int { return heights[h.Of] + int(h.Add) }

// Block is a range of the bus: as many entries as its height, each a fingerprint of the block's coordinates.
type Block struct {
	Table  uint8 // a table, or Framework
	Height Height
	Coords []Coord
}

// CoordKind says how a framework block's coordinate is computed.
type CoordKind uint8

// Kinds of coordinates. Those of the tables' blocks are the sum of their terms (CoordTerms).
const (
	CoordConstant CoordKind = iota + 1 // Factor
	CoordClaim                         // the claim Claim; read from the proof where Fresh
	CoordIndex                         // the power of the generator g^i at entry i
	CoordProgram                       // a slot of the guest's table; the block's value takes the place of all of these
	CoordTerms                         // the sum of Terms
)

// Coord is one coordinate of a block's entries.
type Coord struct {
	Kind    CoordKind
	Factor  uint64 // CoordConstant
	Claim   uint8  // CoordClaim: the claim that holds the value
	Fresh   bool   // CoordClaim: the proof gives the value here
	Padding uint64 // the coordinate in a padding row, zero for the framework
	Terms   []Term
}

// TermKind says what a term is.
type TermKind uint8

// Kinds of terms; A and B are columns of the block's table.
const (
	TermConstant TermKind = iota + 1 // Factor
	TermColumn                       // Factor * A
	TermProduct                      // Factor * A * B
)

// Term is one summand of a coordinate.
type Term struct {
	Kind   TermKind
	Factor uint64
	A, B   uint8
}

// PointKind says at which point a claim of the opening is made.
type PointKind uint8

// Kinds of points.
const (
	PointBus    PointKind = iota + 1 // the first coordinates of the bus's point
	PointTable                       // the first coordinates of the table sumcheck's point
	PointInput                       // the public input's line
	PointSlot                        // as PointTable, then the bits of Slot: a slot of the packed Keccak column
	PointKeccak                      // consumed by the Keccak reduction: no claim of the opening
)

// Claim is a claimed value of a committed column.
type Claim struct {
	Point  PointKind
	Column uint8 // committed column
	Slot   uint8 // of PointSlot
}

// Level is one level of the low degree test.
type Level struct {
	Folds      uint8 // variables that its sumcheck folds; a row of its tree has 2^Folds elements
	LogMessage uint8 // log of the message's length after folding
	LogDomain  uint8 // log of the number of rows, the depth of its Merkle tree
	Queries    uint16
	GrindBits  uint8 // low bits of the sponge's first lane that are zero after the nonce
	Samples    uint8 // out of domain samples on this level's message, zero on the first
}

// Ladder is the low degree test for one rate and size: its last level is followed by a message of 2^LogTail elements in clear.
type Ladder struct {
	Levels  []Level
	LogTail uint8
}

// MaxLevels is the largest number of levels of a ladder.
const MaxLevels = 6

// LadderFor returns the test for an inverse rate of 2^logRate and a committed size of 2^logSize, or nil where there is none.
func LadderFor(logRate, logSize int) *Ladder {
	r, s := logRate-1, logSize-MinLogSize
	if r < 0 || r >= len(Ladders) || s < 0 || s >= len(Ladders[0]) {
		return nil
	}
	return &Ladders[r][s]
}
