package xmss

import (
	"context"
	"encoding/binary"

	"aggnode/internal/lanes"
)

// b2Key is the secret part of a blake2s key: one tree whose real leaves are the epochs of its range. Immutable but for the
// subtrees it keeps.
type b2Key struct {
	secret     *b2Secret
	start, end uint32
	upper      *section // level 9 to the root
	subtrees   pair[*section]
	ahead      b2Ahead
}

func newB2Key(secret *b2Secret, start, end uint32, row []node) *b2Key {
	return &b2Key{
		secret: secret, start: start, end: end,
		upper: newSection(secret, subtreeHeight, b2Height, start>>subtreeHeight, row),
	}
}

func generateB2(ctx context.Context, seed *[32]byte, start, end uint32, opts GenerateOptions) (*b2Key, error) {
	secret := newB2Secret(seed)
	rows := newRowBuilder(opts, b2RowSize(start, end))
	row, err := rows.row(ctx, secret, start, end)
	if err != nil {
		return nil, err
	}
	return newB2Key(secret, start, end, row), nil
}

// b2RowSize is the number of level-9 nodes that a key over the range keeps.
func b2RowSize(start, end uint32) int { return int(end>>subtreeHeight-start>>subtreeHeight) + 1 }

func (k *b2Key) publicKey() PublicKey {
	root := k.upper.top()
	pk := PublicKey(append(root[:], make([]byte, nodeSize)...))
	for i, w := range k.secret.param {
		binary.LittleEndian.PutUint32(pk[nodeSize+4*i:], w)
	}
	return pk
}

func (k *b2Key) subtree(ctx context.Context, epoch uint32) (*section, error) {
	q := epoch >> subtreeHeight
	return k.subtrees.get(ctx, q, func(ctx context.Context) (*section, error) {
		s, err := buildSubtree(ctx, k.secret, q, k.start, k.end)
		if err != nil {
			return nil, err
		}
		if s.top() != k.upper.levels[0][q-k.start>>subtreeHeight] {
			return nil, errRow
		}
		return s, nil
	})
}

func (k *b2Key) prepare(ctx context.Context, epoch uint32) error {
	_, err := k.subtree(ctx, epoch)
	return err
}

func (k *b2Key) begin(ctx context.Context, epoch uint32, trials int) error {
	return k.ahead.prepare(ctx, k.secret, epoch, trials)
}

// randomizer searches for that of a message.
func (k *b2Key) randomizer(ctx context.Context, epoch uint32, message *[MessageSize]byte) (found *b2Found, err error) {
	k.ahead.use(epoch, func(begun []lanes.Blake2sStates) {
		found, err = k.secret.search(ctx, epoch, message, begun)
	})
	return found, err
}

func (k *b2Key) search(ctx context.Context, epoch uint32, message *[MessageSize]byte) (reveal func() []byte, err error) {
	below, err := k.subtree(ctx, epoch)
	if err != nil {
		return nil, err
	}
	found, err := k.randomizer(ctx, epoch, message)
	if err != nil {
		return nil, err
	}
	return func() []byte {
		sig := make([]byte, 0, b2SignatureSize)
		sig = k.secret.appendValues(sig, epoch, &found.digits)
		sig = append(sig, found.randomizer[:]...)
		sig = below.appendPath(sig, epoch)
		return k.upper.appendPath(sig, epoch)
	}, nil
}

func (k *b2Key) appendRows(b []byte) []byte { return appendNodes(b, k.upper.levels[0]) }
