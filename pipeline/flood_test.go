package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// slow is a gate that lets each signature check take a time.
func slow(vote, proof time.Duration) func(context.Context, any) {
	return func(ctx context.Context, first any) {
		d := vote
		if _, ok := first.(*wire.SignedAggregate); ok {
			d = proof
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// Eight peers forge every validator before the honest relay comes, slot after
// slot: nothing valid is lost, and the relay is not blamed.
func TestForgersDoNotShadowTheRealVotes(t *testing.T) {
	t.Parallel()
	const validators = 128
	inBubble(t, func(c *Config) { c.Validators = validators }, func(r *rig) {
		r.verifier.gate = slow(time.Millisecond, 0)
		for slot := wire.Slot(10); slot < 13; slot++ {
			data := dataFor(slot, 1, 0)
			var all []<-chan Outcome
			for v := range validators {
				for f := range 8 {
					all = append(all, r.later(fmt.Sprintf("forger %d", f), r.attestation(v, data, bad)))
				}
				if v%16 == 15 {
					synctest.Wait()
				}
			}
			synctest.Wait()
			if slot == 10 {
				advance(2 * time.Millisecond) // one check: without any fact all nine are equals
			}
			var honest []<-chan Outcome
			for v := range validators {
				honest = append(honest, r.later("relay", r.attestation(v, data, good)))
			}
			for v, ch := range honest {
				require.Equal(t, outcomeOf(wire.ReasonNone), <-ch, "slot %d validator %d", slot, v)
			}
			for _, ch := range all {
				require.NotEqual(t, Accept, (<-ch).Verdict)
			}
			validators, attestations, _ := r.sink.counts()
			require.Equal(t, 128, validators)
			require.Equal(t, int(slot-9)*128, attestations, "each vote once")
			require.Zero(t, r.PeerScore("relay").Rejected)
			require.Positive(t, r.PeerScore("forger 3").Rejected)
			advance(testSlot)
		}
		r.balanced()
	})
}

// A neighbour forwards before it checks: the forgery of a validator's vote comes
// first and through the same peer, and is still waiting when the real one comes.
func TestARelayOfForgeriesStillDeliversTheRealVote(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Workers = 1 }, func(r *rig) {
		r.verifier.gate = slow(10*time.Millisecond, 0)
		data := dataFor(10, 1, 0)
		hold := r.later("x", r.attestation(500, dataFor(10, 1, 9), good))
		synctest.Wait()
		var forged []<-chan Outcome
		for range 5 {
			forged = append(forged, r.later("relay", r.attestation(7, data, bad)))
		}
		synctest.Wait()
		require.Equal(t, outcomeOf(wire.ReasonNone), r.receive("relay", r.attestation(7, data, good)))
		require.Equal(t, Accept, (<-hold).Verdict)
		for _, ch := range forged {
			require.Equal(t, outcomeOf(wire.ReasonBadSignature), <-ch)
		}
	})
}

// When room is short, a peer's surplus candidates go before its other votes.
func TestSurplusCandidatesGoFirst(t *testing.T) {
	t.Parallel()
	const validators = 128
	inBubble(t, func(c *Config) { c.Workers, c.Validators = 1, validators }, func(r *rig) {
		release := make(chan struct{})
		r.verifier.gate = func(context.Context, any) { <-release }
		require.Equal(t, 256, r.Limits().Attestations)
		data := dataFor(10, 1, 0)
		hold := r.later("x", r.attestation(127, dataFor(10, 1, 9), good))
		synctest.Wait()
		spam := make([]<-chan Outcome, 0, 300)
		for range cap(spam) {
			spam = append(spam, r.later("relay", r.attestation(7, data, bad)))
		}
		synctest.Wait()
		var honest []<-chan Outcome
		for v := range validators - 1 {
			honest = append(honest, r.later("relay", r.attestation(v, data, good)))
		}
		synctest.Wait()
		close(release)
		for v, ch := range honest {
			require.Equal(t, outcomeOf(wire.ReasonNone), <-ch, "validator %d", v)
		}
		require.Equal(t, Accept, (<-hold).Verdict)
		for _, ch := range spam {
			require.NotEqual(t, Accept, (<-ch).Verdict)
		}
	})
}

// Ten times what the queue holds comes at once, and again and again. Bounds hold,
// every message ends once, an aggregate still goes through each slot, and the
// queues are empty within a slot after it ends.
func TestAFloodIsShedByTheRules(t *testing.T) {
	t.Parallel()
	const validators = 128
	inBubble(t, func(c *Config) { c.Validators = validators }, func(r *rig) {
		r.verifier.gate = slow(2*time.Millisecond, 100*time.Millisecond)
		bound := r.Limits().Attestations
		for slot := wire.Slot(10); slot < 14; slot++ {
			var flood []<-chan Outcome
			for i := range 10 * bound {
				peer := fmt.Sprintf("flooder %d", i%3)
				flood = append(flood, r.later(peer, r.attestation(i%validators, dataFor(slot, 1, uint64(i)), bad)))
				if i%500 == 0 {
					flood = append(flood, r.later(peer, r.aggregate(dataFor(slot, 1, uint64(i)), 100<<10, bad, i%validators, 5)))
				}
			}
			synctest.Wait()
			s := r.Stats()
			require.LessOrEqual(t, s.Classes[1].Waiting, bound)
			require.GreaterOrEqual(t, s.Classes[1].Waiting, bound-r.cfg.Workers, "a worker may have come for a vote after the last one arrived")
			require.LessOrEqual(t, s.Classes[2].Waiting, aggregateBound)
			require.Equal(t, outcomeOf(wire.ReasonNone), <-r.later("honest", r.aggregate(dataFor(slot, 1, 0), 1000, good, 1, 2, 3)))
			require.Equal(t, outcomeOf(wire.ReasonNone), <-r.later("honest", r.attestation(5, dataFor(slot, 1, 0), good)))
			for _, ch := range flood {
				out := <-ch
				require.NotEqual(t, VerdictUnknown, out.Verdict)
				require.NotEqual(t, Accept, out.Verdict)
			}
			advance(time.Until(r.clock.SlotStart(slot + 1)))
			s = r.Stats()
			for _, c := range s.Classes {
				require.Zero(t, c.Waiting+c.Running+c.InFlight, "class %v", c.Class)
			}
			r.balanced()
		}
	})
}

// A peer with random roots and slots costs bounded memory, and no other peer's
// votes.
func TestRandomVotesOfOnePeerStayBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *rig) {
		r.verifier.gate = slow(time.Millisecond, 0)
		random := rand.New(rand.NewPCG(3, 4))
		var wg sync.WaitGroup
		for i := range 20_000 {
			slot := wire.Slot(random.Uint64N(14))
			if i%3 == 0 {
				slot = wire.Slot(random.Uint64())
			}
			m := r.attestation(int(random.Uint64N(1500)), dataFor(slot, byte(random.Uint64N(3)), random.Uint64()), bad)
			wg.Go(func() { r.receive("liar", m) })
			if i%1000 == 0 {
				out := <-r.later("honest", r.attestation(i/1000, dataFor(10, 1, 0), good))
				require.Equal(t, Accept, out.Verdict)
				s := r.Stats()
				require.LessOrEqual(t, s.Classes[1].Waiting, r.Limits().Attestations)
			}
		}
		wg.Wait()
		r.mu.Lock()
		require.LessOrEqual(t, len(r.peers.records), 2)
		r.mu.Unlock()
		r.balanced()
	})
}

// Random messages of all kinds, with callers that give up and blocks that come:
// each ends with one reason, and nothing is left over.
func TestEveryItemEndsOnceUnderRandomLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(c *Config) { c.Workers = 1 + int(seed) }, func(r *rig) {
				r.verifier.gate = slow(3*time.Millisecond, 60*time.Millisecond)
				random := rand.New(rand.NewPCG(seed, 9))
				var wg sync.WaitGroup
				sent := 0
				for range 4000 {
					slot, _ := r.clock.At()
					slot += wire.Slot(random.Uint64N(6)) - 3
					data := dataFor(slot, byte(1+random.Uint64N(4)), random.Uint64N(3))
					quality := byte(1 + random.Uint64N(4))
					peer := fmt.Sprint("peer ", random.Uint64N(6))
					ctx, cancel := context.WithCancel(context.Background())
					if random.Uint64N(20) == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Uint64N(100))*time.Millisecond)
					}
					var m any
					switch random.Uint64N(10) {
					case 0, 1:
						m = r.aggregate(data, 1+int(random.Uint64N(100<<10)), quality, int(random.Uint64N(1024)), int(random.Uint64N(1024)))
					case 2:
						m = r.block(slot, quality)
					default:
						m = r.attestation(int(random.Uint64N(1100)), data, quality)
					}
					local := random.Uint64N(20) == 0
					sent++
					wg.Go(func() {
						defer cancel()
						var out Outcome
						switch m := m.(type) {
						case *wire.SignedAttestation:
							if local {
								out = r.SubmitLocal(ctx, &Item{Attestation: m})

								break
							}
							out = r.receiveCtx(ctx, peer, m)
						default:
							out = r.receiveCtx(ctx, peer, m)
						}
						require.NotEqual(t, VerdictUnknown, out.Verdict)
						require.Equal(t, VerdictOf(out.Reason), out.Verdict)
					})
					switch random.Uint64N(100) {
					case 0:
						root := rootOf(byte(2 + random.Uint64N(3)))
						r.head.learn(root)
						r.HeadImported(root)
					case 1:
						synctest.Wait() // the counters are not of one moment
						r.balanced()
					case 2, 3, 4, 5:
						advance(time.Duration(random.Uint64N(200)) * time.Millisecond)
					}
				}
				wg.Wait()
				advance(4 * testSlot)
				s := r.Stats()
				for _, c := range s.Classes {
					require.Zero(t, c.Waiting+c.Running+c.InFlight, "class %v", c.Class)
				}
				require.Zero(t, s.ParkedAttestations+s.ParkedAggregates+s.ParkedHeads)
				r.mu.Lock()
				defer r.mu.Unlock()
				require.Zero(t, r.deadlines.len())
				for id, p := range r.peers.records {
					require.Zero(t, p.refs, id)
				}
				total := 0
				for _, n := range r.unlockedReasons() {
					total += n
				}
				require.Equal(t, sent, total)
			})
		})
	}
}

// unlockedReasons is balanced for a caller that holds the lock.
func (r *rig) unlockedReasons() map[string]int {
	r.mu.Unlock()
	defer r.mu.Lock()

	return r.balanced()
}
