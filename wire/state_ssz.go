package wire

import "fmt"

// Fixed parts in bytes of the state and its containers (leanSpec
// containers/state.py): configuration, slot, header, two checkpoints and the
// offsets of five lists.
const (
	headerSize       = 8 + 8 + 3*32
	stateListOffsets = 8 + 8 + headerSize + 2*checkpointSize
	stateFixed       = stateListOffsets + 5*offsetSize
)

// AppendSSZ appends the 112 bytes of the header.
func (h *BlockHeader) AppendSSZ(dst []byte) []byte {
	dst = appendUint64(dst, uint64(h.Slot))
	dst = appendUint64(dst, uint64(h.ProposerIndex))
	dst = append(dst, h.ParentRoot[:]...)
	dst = append(dst, h.StateRoot[:]...)

	return append(dst, h.BodyRoot[:]...)
}

// DecodeBlockHeader reads exactly 112 bytes.
func DecodeBlockHeader(b []byte) (BlockHeader, error) {
	if len(b) != headerSize {
		return BlockHeader{}, malformed("BlockHeader", "%d bytes, must be %d", len(b), headerSize)
	}

	return decodeHeader(b), nil
}

// decodeHeader reads the first 112 bytes of b, which must be there.
func decodeHeader(b []byte) BlockHeader {
	return BlockHeader{
		Slot:          Slot(uint64At(b, 0)),
		ProposerIndex: ValidatorIndex(uint64At(b, 8)),
		ParentRoot:    Root(b[16:48]),
		StateRoot:     Root(b[48:80]),
		BodyRoot:      Root(b[80:112]),
	}
}

// validatorSize returns the length in bytes of a validator.
func (p *Profile) validatorSize() int { return 2*p.PublicKeySize + 8 }

// EncodeState returns the encoding of a state. It fails when a key does not have
// the profile's length.
func (p *Profile) EncodeState(s *State) ([]byte, error) {
	for i := range s.Validators {
		v := &s.Validators[i]
		if len(v.AttestationKey) != p.PublicKeySize || len(v.ProposalKey) != p.PublicKeySize {
			return nil, fmt.Errorf("encode state: validator %d has keys of %d and %d bytes, profile %s has %d",
				i, len(v.AttestationKey), len(v.ProposalKey), p.Name, p.PublicKeySize)
		}
	}
	slots, votes := orEmptyBits(s.JustifiedSlots), orEmptyBits(s.JustificationsValidators)
	sizes := [5]int{
		32 * len(s.HistoricalBlockHashes),
		len(slots),
		p.validatorSize() * len(s.Validators),
		32 * len(s.JustificationsRoots),
		len(votes),
	}
	total := stateFixed
	for _, n := range sizes {
		total += n
	}
	dst := appendUint64(make([]byte, 0, total), s.GenesisTime)
	dst = appendUint64(dst, uint64(s.Slot))
	dst = s.LatestBlockHeader.AppendSSZ(dst)
	dst = s.LatestJustified.AppendSSZ(dst)
	dst = s.LatestFinalized.AppendSSZ(dst)
	off := stateFixed
	for _, n := range sizes {
		dst = appendOffset(dst, off)
		off += n
	}
	dst = appendRoots(dst, s.HistoricalBlockHashes)
	dst = append(dst, slots...)
	for i := range s.Validators {
		v := &s.Validators[i]
		dst = append(dst, v.AttestationKey...)
		dst = append(dst, v.ProposalKey...)
		dst = appendUint64(dst, uint64(v.Index))
	}
	dst = appendRoots(dst, s.JustificationsRoots)

	return append(dst, votes...), nil
}

// orEmptyBits returns the bitlist, or that of no bits where there is none.
func orEmptyBits(b []byte) []byte {
	if len(b) == 0 {
		return emptySSZ
	}

	return b
}

// appendRoots appends the roots one after the other.
func appendRoots(dst []byte, roots []Root) []byte {
	for i := range roots {
		dst = append(dst, roots[i][:]...)
	}

	return dst
}

// DecodeState reads a state with keys of the profile's length. Keys and bitlists
// alias b.
func (p *Profile) DecodeState(b []byte) (*State, error) {
	lists, err := splitFields("State", b, stateFixed,
		stateListOffsets, stateListOffsets+offsetSize, stateListOffsets+2*offsetSize, stateListOffsets+3*offsetSize, stateListOffsets+4*offsetSize)
	if err != nil {
		return nil, err
	}
	s := &State{
		GenesisTime:       uint64At(b, 0),
		Slot:              Slot(uint64At(b, 8)),
		LatestBlockHeader: decodeHeader(b[16:]),
		LatestJustified:   decodeCheckpoint(b[16+headerSize:]),
		LatestFinalized:   decodeCheckpoint(b[16+headerSize+checkpointSize:]),
	}
	if s.HistoricalBlockHashes, err = decodeRoots("State.historical_block_hashes", lists[0]); err != nil {
		return nil, err
	}
	if _, err = bitlistLen(lists[1], HistoricalRootsLimit); err != nil {
		return nil, err
	}
	s.JustifiedSlots = lists[1]
	if s.Validators, err = p.decodeValidators(lists[2]); err != nil {
		return nil, err
	}
	if s.JustificationsRoots, err = decodeRoots("State.justifications_roots", lists[3]); err != nil {
		return nil, err
	}
	if _, err = bitlistLen(lists[4], p.votesLimit()); err != nil {
		return nil, err
	}
	s.JustificationsValidators = lists[4]

	return s, nil
}

// decodeRoots reads a list of at most HistoricalRootsLimit roots.
func decodeRoots(container string, b []byte) ([]Root, error) {
	if len(b)%32 != 0 || len(b)/32 > HistoricalRootsLimit {
		return nil, malformed(container, "%d bytes, must be a multiple of 32 up to %d", len(b), 32*HistoricalRootsLimit)
	}
	if len(b) == 0 {
		return nil, nil
	}

	return chunksOf(b), nil
}

// decodeValidators reads the registry. An index that is not the position is
// refused (leanSpec containers/validator.py).
func (p *Profile) decodeValidators(b []byte) ([]Validator, error) {
	size := p.validatorSize()
	if len(b)%size != 0 || len(b)/size > p.RegistryLimit {
		return nil, malformed("State.validators", "%d bytes, must be a multiple of %d up to %d", len(b), size, size*p.RegistryLimit)
	}
	if len(b) == 0 {
		return nil, nil
	}
	out := make([]Validator, len(b)/size)
	for i := range out {
		out[i] = p.decodeValidator(b[i*size : (i+1)*size])
		if out[i].Index != ValidatorIndex(i) { //nolint:gosec // i is not negative
			return nil, malformed("State.validators", "index %d at position %d", out[i].Index, i)
		}
	}

	return out, nil
}

// decodeValidator reads a validator of exactly validatorSize bytes, whose keys
// alias b.
func (p *Profile) decodeValidator(b []byte) Validator {
	k := p.PublicKeySize

	return Validator{
		AttestationKey: b[:k:k],
		ProposalKey:    b[k : 2*k : 2*k],
		Index:          ValidatorIndex(uint64At(b, 2*k)),
	}
}
