package wire

// Protocol ids of request/response streams (leanSpec reqresp/message.py).
const (
	ProtocolStatus        = "/leanconsensus/req/status/1/ssz_snappy"
	ProtocolBlocksByRoot  = "/leanconsensus/req/blocks_by_root/1/ssz_snappy"
	ProtocolBlocksByRange = "/leanconsensus/req/blocks_by_range/1/ssz_snappy"
)

// Lengths in bytes of the requests.
const (
	StatusSize              = 2 * checkpointSize
	BlocksByRangeSize       = 16
	MaxBlocksByRootSize     = offsetSize + 32*MaxRequestRoots
	blocksByRootFixed   int = offsetSize
)

// Status is what a node says about its chain, in both directions.
type Status struct {
	Finalized Checkpoint
	Head      Checkpoint
}

// BlocksByRootRequest asks for blocks by their roots, at most MaxRequestRoots.
type BlocksByRootRequest struct {
	Roots []Root
}

// BlocksByRangeRequest asks for the canonical blocks of Count slots from
// StartSlot. Count is not checked here.
type BlocksByRangeRequest struct {
	StartSlot Slot
	Count     uint64
}

// AppendSSZ appends the 80 bytes of the status.
func (s *Status) AppendSSZ(dst []byte) []byte {
	return s.Head.AppendSSZ(s.Finalized.AppendSSZ(dst))
}

// DecodeStatus reads exactly 80 bytes.
func DecodeStatus(b []byte) (Status, error) {
	if len(b) != StatusSize {
		return Status{}, malformed("Status", "%d bytes, must be %d", len(b), StatusSize)
	}

	return Status{Finalized: decodeCheckpoint(b), Head: decodeCheckpoint(b[checkpointSize:])}, nil
}

// AppendSSZ appends the encoding of the request.
func (r *BlocksByRootRequest) AppendSSZ(dst []byte) []byte {
	dst = appendOffset(dst, blocksByRootFixed)
	for i := range r.Roots {
		dst = append(dst, r.Roots[i][:]...)
	}

	return dst
}

// DecodeBlocksByRoot reads a request of at most MaxRequestRoots roots.
func DecodeBlocksByRoot(b []byte) (BlocksByRootRequest, error) {
	fields, err := splitFields("BlocksByRootRequest", b, blocksByRootFixed, 0)
	if err != nil {
		return BlocksByRootRequest{}, err
	}
	list := fields[0]
	if len(list)%32 != 0 || len(list)/32 > MaxRequestRoots {
		return BlocksByRootRequest{}, malformed("BlocksByRootRequest", "%d bytes of roots, must be a multiple of 32 up to %d", len(list), 32*MaxRequestRoots)
	}
	var r BlocksByRootRequest
	if len(list) > 0 {
		r.Roots = chunksOf(list)
	}

	return r, nil
}

// AppendSSZ appends the 16 bytes of the request.
func (r *BlocksByRangeRequest) AppendSSZ(dst []byte) []byte {
	return appendUint64(appendUint64(dst, uint64(r.StartSlot)), r.Count)
}

// DecodeBlocksByRange reads exactly 16 bytes.
func DecodeBlocksByRange(b []byte) (BlocksByRangeRequest, error) {
	if len(b) != BlocksByRangeSize {
		return BlocksByRangeRequest{}, malformed("BlocksByRangeRequest", "%d bytes, must be %d", len(b), BlocksByRangeSize)
	}

	return BlocksByRangeRequest{StartSlot: Slot(uint64At(b, 0)), Count: uint64At(b, 8)}, nil
}
