package pipeline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aggnode/wire"
)

// BenchmarkQueue is one vote into a queue of some depth and one out, and one that
// displaces another in a full queue.
func BenchmarkQueue(b *testing.B) {
	limits := limitsFor(4096, 1, 1, 2)
	peers := make([]*peerRecord, 12)
	for i := range peers {
		peers[i] = &peerRecord{id: fmt.Sprint(i)}
	}
	fill := func(n int) (queue, []*Item) {
		q := newQueue(limits, 4096)
		q.advance(10)
		items := make([]*Item, limits.Attestations+1)
		for i := range items {
			items[i] = &Item{
				Class: ClassAttestation, kind: kindAttestation, Slot: 10, seq: uint64(i), peer: peers[i%len(peers)],
				Attestation: &wire.SignedAttestation{ValidatorIndex: wire.ValidatorIndex(i % 4096)},
			}
			items[i].DataRoot[0] = byte(i % 3)
		}
		for _, it := range items[:n] {
			q.attestations.push(it)
		}

		return q, items
	}
	for _, depth := range []int{0, 128, 8000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			q, items := fill(depth)
			next := items[depth]
			b.ReportAllocs()
			for b.Loop() {
				q.attestations.push(next)
				next = q.attestations.first()
				q.attestations.remove(next)
			}
		})
	}
	b.Run("full", func(b *testing.B) {
		q, items := fill(limits.Attestations)
		next := items[limits.Attestations]
		b.ReportAllocs()
		for b.Loop() {
			if v := q.attestations.push(next); v != nil {
				next = v
			}
		}
	})
}

// BenchmarkVote is the whole path of a vote but for its signature: screen, queue,
// worker, facts, sink, verdict.
func BenchmarkVote(b *testing.B) {
	r := newRig(b, clockAt(10, time.Hour), func(c *Config) { c.Validators = 4096 })
	stop := r.start()
	defer stop()
	topic, payload := r.encode(r.attestation(0, dataFor(10, 1, 0), good))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		r.mu.Lock()
		r.dedupe.forgetAttestation(0, 10)
		r.mu.Unlock()
		it, out := r.Screen(topic, "p", payload)
		if it == nil {
			b.Fatal(out)
		}
		if out = r.Submit(ctx, it); out.Verdict != Accept {
			b.Fatal(out)
		}
	}
}

// BenchmarkScreenDuplicate is a vote that was verified before.
func BenchmarkScreenDuplicate(b *testing.B) {
	r := newRig(b, clockAt(10, time.Hour), nil)
	data := dataFor(10, 1, 0)
	r.dedupe.markAttestation(3, 10, data.HashTreeRoot())
	topic, payload := r.encode(r.attestation(3, data, good))
	b.ReportAllocs()
	for b.Loop() {
		if _, out := r.Screen(topic, "p", payload); out.Reason != wire.ReasonDuplicate {
			b.Fatal(out)
		}
	}
}
