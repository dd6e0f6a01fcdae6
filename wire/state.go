package wire

import "fmt"

// BlockHeader is a block with the root of its body in place of the body. It has
// the root of the block (leanSpec containers/block.py).
type BlockHeader struct {
	Slot          Slot
	ProposerIndex ValidatorIndex
	ParentRoot    Root
	StateRoot     Root
	BodyRoot      Root
}

// Validator is one entry of the registry: two independent public keys of
// Profile.PublicKeySize bytes, because a one-time leaf signs one message a slot.
type Validator struct {
	AttestationKey []byte
	ProposalKey    []byte
	Index          ValidatorIndex
}

// State is the consensus state (leanSpec containers/state.py). Bitlists are in
// their SSZ form with the delimiter; nil stands for no bits.
type State struct {
	GenesisTime              uint64 // seconds since 1970
	Slot                     Slot
	LatestBlockHeader        BlockHeader
	LatestJustified          Checkpoint
	LatestFinalized          Checkpoint
	HistoricalBlockHashes    []Root // at most HistoricalRootsLimit
	JustifiedSlots           []byte // bitlist, at most HistoricalRootsLimit bits
	Validators               []Validator
	JustificationsRoots      []Root // at most HistoricalRootsLimit
	JustificationsValidators []byte // bitlist, at most HistoricalRootsLimit x Profile.RegistryLimit bits
}

// votesLimit is the limit in bits of the votes of all pending justifications
// (leanSpec state.py).
func (p *Profile) votesLimit() int { return HistoricalRootsLimit * p.RegistryLimit }

// HashTreeRoot returns the root of the header.
func (h *BlockHeader) HashTreeRoot() Root {
	chunks := [8]Root{uint64Chunk(uint64(h.Slot)), uint64Chunk(uint64(h.ProposerIndex)), h.ParentRoot, h.StateRoot, h.BodyRoot}

	return merkleize(chunks[:5], 3)
}

// HashTreeRoot returns the root of the validator.
func (v *Validator) HashTreeRoot() Root {
	chunks := [4]Root{bytesRoot(v.AttestationKey), bytesRoot(v.ProposalKey), uint64Chunk(uint64(v.Index))}

	return merkleize(chunks[:3], 2)
}

// bytesRoot returns the root of a fixed-size byte vector.
func bytesRoot(b []byte) Root {
	chunks := chunksOf(b)

	return merkleize(chunks, depthOf(len(chunks)))
}

// bitlistRoot returns the root of a bitlist in SSZ form with at most limit bits.
func bitlistRoot(b []byte, limit int) (Root, error) {
	b = orEmptyBits(b)
	n, err := bitlistLen(b, limit)
	if err != nil {
		return Root{}, err
	}
	content := make([]byte, (n+7)/8)
	copy(content, b)
	if n%8 != 0 {
		content[n/8] &^= 1 << (n % 8)
	}

	return mixInLength(merkleize(chunksOf(content), bitlistDepth(limit)), uint64(n)), nil
}

// rootListRoot returns the root of a list of roots with at most
// HistoricalRootsLimit of them.
func rootListRoot(roots []Root) (Root, error) {
	if len(roots) > HistoricalRootsLimit {
		return Root{}, fmt.Errorf("%d roots, at most %d allowed", len(roots), HistoricalRootsLimit)
	}
	chunks := append([]Root(nil), roots...)

	return mixInLength(merkleize(chunks, depthOf(HistoricalRootsLimit)), uint64(len(roots))), nil
}

// HashTreeRoot returns the state root under the profile's limits. It fails when a
// list is longer than its limit or a bitlist has no delimiter.
func (s *State) HashTreeRoot(p *Profile) (Root, error) {
	if len(s.Validators) > p.RegistryLimit {
		return Root{}, fmt.Errorf("hash state: %d validators, at most %d allowed", len(s.Validators), p.RegistryLimit)
	}
	history, err := rootListRoot(s.HistoricalBlockHashes)
	if err != nil {
		return Root{}, fmt.Errorf("hash state: historical block hashes: %w", err)
	}
	justified, err := bitlistRoot(s.JustifiedSlots, HistoricalRootsLimit)
	if err != nil {
		return Root{}, fmt.Errorf("hash state: justified slots: %w", err)
	}
	pending, err := rootListRoot(s.JustificationsRoots)
	if err != nil {
		return Root{}, fmt.Errorf("hash state: justification roots: %w", err)
	}
	votes, err := bitlistRoot(s.JustificationsValidators, p.votesLimit())
	if err != nil {
		return Root{}, fmt.Errorf("hash state: justification votes: %w", err)
	}
	validators := make([]Root, len(s.Validators))
	for i := range s.Validators {
		validators[i] = s.Validators[i].HashTreeRoot()
	}
	registry := mixInLength(merkleize(validators, depthOf(p.RegistryLimit)), uint64(len(validators)))
	chunks := [16]Root{
		uint64Chunk(s.GenesisTime), // one field: the root of the field
		uint64Chunk(uint64(s.Slot)),
		s.LatestBlockHeader.HashTreeRoot(),
		s.LatestJustified.HashTreeRoot(),
		s.LatestFinalized.HashTreeRoot(),
		history,
		justified,
		registry,
		pending,
		votes,
	}

	return merkleize(chunks[:10], 4), nil
}

// GenesisState returns the state of slot 0: empty lists, zero checkpoints, a
// header with the root of the empty body and a zero state root. The validators
// are shared, not copied.
func (p *Profile) GenesisState(genesisTime uint64, validators []Validator) *State {
	return &State{
		GenesisTime:       genesisTime,
		LatestBlockHeader: BlockHeader{BodyRoot: (&BlockBody{}).HashTreeRoot(p)},
		Validators:        validators,
	}
}

// GenesisBlock returns the block of slot 0, whose state root is the root of the
// genesis state, and its own root. It fails above RegistryLimit validators.
func (p *Profile) GenesisBlock(genesisTime uint64, validators []Validator) (Block, Root, error) {
	stateRoot, err := p.GenesisState(genesisTime, validators).HashTreeRoot(p)
	if err != nil {
		return Block{}, Root{}, err
	}
	block := Block{StateRoot: stateRoot}

	return block, block.HashTreeRoot(p), nil
}
