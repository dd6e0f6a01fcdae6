package xmss

import (
	"context"
	"encoding/binary"
)

// kcKey is the secret part of a keccak key: a top tree of 2^16 leaves, each of which signs the root of a bottom tree of 2^16
// epochs. Immutable but for the bottom trees and subtrees it keeps.
type kcKey struct {
	secret   *kcSecret
	top      *section      // level 9 to the root of the top tree
	first    *kcBottomTree // of the first epoch of the range
	bottoms  pair[*kcBottomTree]
	subtrees pair[*section] // of bottom trees, by epoch >> 9
}

// kcBottomTree is one bottom tree with the top layer's part of every signature made in it. Immutable.
type kcBottomTree struct {
	index uint32   // epoch >> 16
	upper *section // level 9 to the bottom root
	part  []byte   // 1200 bytes
}

// kcRowSize is the number of level-9 nodes of one tree.
const kcRowSize = 1 << (kcHeight - subtreeHeight)

func (s *kcSecret) newTop(row []node) *section {
	return newSection(kcTree{s, kcTop}, subtreeHeight, kcHeight, 0, row)
}

func (s *kcSecret) newBottom(index uint32, row []node) *section {
	return newSection(kcTree{s, kcBottom}, subtreeHeight, kcHeight, index<<(kcHeight-subtreeHeight), row)
}

func generateKc(ctx context.Context, seed *[32]byte, start uint32, opts GenerateOptions) (*kcKey, error) {
	k := &kcKey{secret: newKcSecret(seed)}
	rows := newRowBuilder(opts, 2*kcRowSize)
	row, err := rows.row(ctx, kcTree{k.secret, kcTop}, 0, 1<<kcHeight-1)
	if err != nil {
		return nil, err
	}
	k.top = k.secret.newTop(row)
	k.first, err = k.buildBottom(ctx, start>>kcHeight, rows)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// buildBottom computes a bottom tree (2^16 leaves: 0.7 s of one core with AVX-512, 2.2 s with AVX2, 6 s in portable code; Intel
// Xeon, 2026-12) and has the top layer sign it.
func (k *kcKey) buildBottom(ctx context.Context, index uint32, rows *rowBuilder) (*kcBottomTree, error) {
	lo := index << kcHeight
	row, err := rows.row(ctx, kcTree{k.secret, kcBottom}, lo, lo|(1<<kcHeight-1))
	if err != nil {
		return nil, err
	}
	b := &kcBottomTree{index: index, upper: k.secret.newBottom(index, row)}
	top := kcTree{k.secret, kcTop}
	root := b.upper.top()
	part, err := top.appendPart(ctx, make([]byte, 0, kcPartSize), index, root[:])
	if err != nil {
		return nil, err
	}
	q := index >> subtreeHeight
	below, err := buildSubtree(ctx, top, q, 0, 1<<kcHeight-1)
	if err != nil {
		return nil, err
	}
	if below.top() != k.top.levels[0][q] {
		return nil, errRow
	}
	b.part = k.top.appendPath(below.appendPath(part, index), index)
	return b, nil
}

func (k *kcKey) publicKey() PublicKey {
	root := k.top.top()
	pk := PublicKey(append(root[:], make([]byte, nodeSize)...))
	binary.LittleEndian.PutUint64(pk[nodeSize:], k.secret.param[0])
	binary.LittleEndian.PutUint64(pk[nodeSize+8:], k.secret.param[1])
	return pk
}

// bottom is the bottom tree of epoch, at hand or built on one core in this goroutine.
func (k *kcKey) bottom(ctx context.Context, epoch uint32) (*kcBottomTree, error) {
	index := epoch >> kcHeight
	if index == k.first.index {
		return k.first, nil
	}
	return k.bottoms.get(ctx, index, func(ctx context.Context) (*kcBottomTree, error) {
		return k.buildBottom(ctx, index, newRowBuilder(GenerateOptions{Workers: 1}, 0))
	})
}

// trees are the subtree of epoch and the bottom tree that it lies in.
func (k *kcKey) trees(ctx context.Context, epoch uint32) (*section, *kcBottomTree, error) {
	b, err := k.bottom(ctx, epoch)
	if err != nil {
		return nil, nil, err
	}
	q := epoch >> subtreeHeight
	below, err := k.subtrees.get(ctx, q, func(ctx context.Context) (*section, error) {
		lo := b.index << kcHeight
		s, err := buildSubtree(ctx, kcTree{k.secret, kcBottom}, q, lo, lo|(1<<kcHeight-1))
		if err != nil {
			return nil, err
		}
		if s.top() != b.upper.levels[0][q%kcRowSize] {
			return nil, errRow
		}
		return s, nil
	})
	return below, b, err
}

func (k *kcKey) prepare(ctx context.Context, epoch uint32) error {
	_, _, err := k.trees(ctx, epoch)
	return err
}

// begin does nothing: the randomizers of a search are one hash and the numbers after it.
func (k *kcKey) begin(context.Context, uint32, int) error { return nil }

func (k *kcKey) search(ctx context.Context, epoch uint32, message *[MessageSize]byte) (reveal func() []byte, err error) {
	below, b, err := k.trees(ctx, epoch)
	if err != nil {
		return nil, err
	}
	tree := kcTree{k.secret, kcBottom}
	found, err := tree.search(ctx, epoch, message[:])
	if err != nil {
		return nil, err
	}
	return func() []byte {
		sig := binary.LittleEndian.AppendUint32(make([]byte, 0, kcSignatureSize), epoch)
		sig = tree.appendFound(sig, epoch, found)
		sig = b.upper.appendPath(below.appendPath(sig, epoch), epoch)
		return append(sig, b.part...)
	}, nil
}

func (k *kcKey) appendRows(b []byte) []byte {
	b = appendNodes(b, k.top.levels[0])
	b = appendNodes(b, k.first.upper.levels[0])
	return append(b, k.first.part...)
}
