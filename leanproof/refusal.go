package leanproof

// Refusal is the check at which a proof was refused. It is an error, comparable, and allocates nothing. It is always the
// fault of the bytes (or, for ClaimMismatch, of what was wanted): the same proof is refused at the same check by everybody.
type Refusal uint8

// The refusals, in the order in which a proof meets them. Nothing is hashed before SignerSet was passed.
const (
	RefusalUnknown Refusal = iota // zero value, never returned

	Encoding        // a list or the whole is shorter or longer than its counts say
	FieldLength     // the deferred point has not 23 coordinates
	DataRoots       // the proof speaks of data availability: not supported
	HighLimb        // an announced number has more than 64 bits
	AnnouncedSize   // the memory or a table is smaller or larger than the machine allows
	InverseRate     // the rate of the code is not one of 1/2 to 1/16
	CommittedSize   // the committed columns need a code that does not exist
	StreamLength    // there are not as many proof words as the announced sizes call for
	MerkleShape     // the opened rows have not the form that the announced sizes call for
	DigestHalf      // half of a Merkle root has more than 128 bits
	OtherScheme     // Verify only: the proof makes a leanSPHINCS claim
	ClaimMismatch   // Verify only: the claims are not the wanted ones
	SignerSet       // the claims are not strictly ascending, or there are none
	CountZero       // the product of the read counts is zero
	ProductLayer    // a layer of the grand products: the children do not match the sumcheck
	KeccakProduct   // a layer of the KECCAK table: the product polynomial does not carry the claim
	KeccakLayer     // the end of a layer of the KECCAK table
	KeccakOutput    // the opening of the outputs of the KECCAK table
	KeccakInput     // the opening of the inputs of the KECCAK table
	Nonce           // a grinding nonce does not meet its bits
	MerkleMissing   // fewer or more rows than distinct query positions, or too few siblings
	MerkleRoot      // the opened rows do not hash to the committed root
	MerkleUnused    // siblings are left over
	StreamUnread    // the walk over the proof took other words than there are
	OpeningTerminal // the final identity of the polynomial opening
	TableValue      // the table of the guest program has another value than the proof needs

	refusals // their number
)

// refusalTexts are the codes (for metric labels), the stage and the text of each refusal.
var refusalTexts = [refusals]struct {
	code  string
	stage Stage
	text  string
}{
	RefusalUnknown:  {"unknown", StageUnknown, "refused for an unknown reason"},
	Encoding:        {"encoding", StageDecode, "not an aggregate's encoding"},
	FieldLength:     {"field_length", StageDecode, "the deferred point has a wrong number of coordinates"},
	DataRoots:       {"data_roots", StageDecode, "data availability roots are not supported"},
	HighLimb:        {"high_limb", StageSizes, "an announced number has high limbs"},
	AnnouncedSize:   {"announced_size", StageSizes, "an announced size is out of range"},
	InverseRate:     {"inverse_rate", StageSizes, "the inverse rate is out of range"},
	CommittedSize:   {"committed_size", StageSizes, "no code has the committed size"},
	StreamLength:    {"stream_length", StageSizes, "the number of proof words does not fit the announced sizes"},
	MerkleShape:     {"merkle_shape", StageSizes, "the opened rows do not fit the announced sizes"},
	DigestHalf:      {"digest_half", StageSizes, "half of a Merkle root is not canonical"},
	OtherScheme:     {"other_scheme", StageClaims, "the proof makes a claim of another scheme"},
	ClaimMismatch:   {"claim_mismatch", StageClaims, "the proof does not make exactly the wanted claims"},
	SignerSet:       {"signer_set", StageClaims, "the claims are not strictly ascending, or there are none"},
	CountZero:       {"count_zero", StageProducts, "the product of the counts is zero"},
	ProductLayer:    {"product_layer", StageProducts, "product layer: the children do not match the sumcheck"},
	KeccakProduct:   {"keccak_product", StageKeccak, "keccak layer: the product polynomial does not carry the claim"},
	KeccakLayer:     {"keccak_layer", StageKeccak, "keccak layer: the end does not match the sumcheck"},
	KeccakOutput:    {"keccak_output", StageKeccakOpenings, "the opening of the keccak outputs does not match"},
	KeccakInput:     {"keccak_input", StageKeccakOpenings, "the opening of the keccak inputs does not match"},
	Nonce:           {"nonce", StageOpening, "a grinding nonce does not meet its bits"},
	MerkleMissing:   {"merkle_missing", StageOpening, "opened rows or siblings are missing"},
	MerkleRoot:      {"merkle_root", StageOpening, "the opened rows do not hash to the root"},
	MerkleUnused:    {"merkle_unused", StageOpening, "siblings are left over"},
	StreamUnread:    {"stream_unread", StageOpening, "the proof words were not used up"},
	OpeningTerminal: {"opening_terminal", StageTerminal, "the final identity of the opening does not hold"},
	TableValue:      {"table_value", StageTable, "the guest's table has not the value that the proof needs"},
}

func (r Refusal) index() Refusal {
	if r >= refusals {
		return RefusalUnknown
	}
	return r
}

// Error is the reason in words, with the stage in front.
func (r Refusal) Error() string {
	e := refusalTexts[r.index()]
	return "check proof: " + e.stage.String() + ": " + e.text
}

// Code is the reason as a metric label and log field.
func (r Refusal) Code() string { return refusalTexts[r.index()].code }

// Stage is the stage that refused.
func (r Refusal) Stage() Stage { return refusalTexts[r.index()].stage }

// Stage is a part of the check. The stages run in the order of their values, and a later one assumes that all
// earlier ones accepted.
type Stage uint8

// The stages of a check.
const (
	StageUnknown        Stage = iota
	StageDecode               // bytes to lists
	StageSizes                // the ten announced words, and the lengths that follow from them
	StageClaims               // the lists of claims
	StageStatement            // what the proof is about, hashed into the transcript
	StageProducts             // grand products of the buses
	StageLeaves               // their leaves as values of columns
	StageTables               // sumcheck over the six tables
	StageInput                // the public input as values of the memory
	StageKeccak               // the KECCAK table, layer by layer
	StageKeccakOpenings       // its outputs and inputs as values of one column
	StageRingSwitch           // all claims on the committed columns as one
	StageOpening              // the opening of the committed polynomial
	StageTerminal             // its last identity
	StageTable                // the value of the guest's table

	stages // their number
)

var stageNames = [stages]string{
	"unknown", "decode", "sizes", "claims", "statement", "products", "leaves", "tables", "input", "keccak",
	"keccak_openings", "ring_switch", "opening", "terminal", "table",
}

// String is the name in errors, labels and reports.
func (s Stage) String() string {
	if s >= stages {
		s = StageUnknown
	}
	return stageNames[s]
}
