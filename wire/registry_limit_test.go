package wire_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/wire"
)

// limited returns the profile "local" with a registry limit.
func limited(t testing.TB, limit int) *wire.Profile {
	t.Helper()
	p, err := profileNamed(t, "local", "").WithRegistryLimit(limit)
	require.NoError(t, err)

	return p
}

// The roots of lists once more, as the definition has them: the whole tree, zero
// chunks included, then the length.
func plainListRoot(chunks []wire.Root, limit, length int) wire.Root {
	width := 1
	for width < limit {
		width *= 2
	}
	level := append(append([]wire.Root(nil), chunks...), make([]wire.Root, width-len(chunks))...)
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = plainPair(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	var tail wire.Root
	binary.LittleEndian.PutUint64(tail[:], uint64(length))

	return plainPair(level[0], tail)
}

func plainPair(a, b wire.Root) wire.Root { return sha256.Sum256(append(a[:], b[:]...)) }

// plainBits returns the chunks of the set.
func plainBits(p wire.Participants) []wire.Root {
	chunks := make([]wire.Root, (p.Len()+255)/256)
	for _, v := range p.Indices() {
		chunks[v/256][v%256/8] |= 1 << (v % 8)
	}

	return chunks
}

func TestRootsUnderEachRegistryLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 8, 255, 256, 257, 1000, wire.DefaultRegistryLimit, 10_000, wire.MaxRegistryLimit} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			p := limited(t, limit)
			r := random{rand.New(rand.NewPCG(5, uint64(limit)))}
			last := wire.ValidatorIndex(limit - 1)
			sets := []wire.Participants{{}, participants(t, 0), participants(t, last), participants(t, 0, last/2, last)}
			for range 5 {
				sets = append(sets, r.participants(t, p, 300))
			}
			var body wire.BlockBody
			var entries []wire.Root
			for _, set := range sets {
				root := plainListRoot(plainBits(set), (limit+255)/256, set.Len())
				require.Equal(t, root, set.HashTreeRoot(p))
				requireOracle(t, p, bareList[sszParticipant], set.AppendReceived(nil), &root)
				if len(entries) == limit {
					continue
				}
				data := r.data()
				body.Attestations = append(body.Attestations, wire.AggregatedAttestation{Participants: set, Data: data})
				entries = append(entries, plainPair(root, wire.Root(data.HashTreeRoot())))
			}
			root := plainListRoot(entries, limit, len(entries))
			require.Equal(t, root, body.HashTreeRoot(p))
			requireOracle(t, p, container[sszBody], body.AppendSSZ(nil), &root)

			state := p.GenesisState(7, r.validators(p, limit))
			state.JustificationsValidators = append(r.bytes(limit/8), 1)
			root, err := state.HashTreeRoot(p)
			require.NoError(t, err)
			encoded := must(p.EncodeState(state))
			requireOracle(t, p, container[sszState], encoded, &root)
			decoded, err := p.DecodeState(encoded)
			require.NoError(t, err)
			again, err := decoded.HashTreeRoot(p)
			require.NoError(t, err)
			require.Equal(t, root, again)
			genesis, _, err := p.GenesisBlock(7, state.Validators)
			require.NoError(t, err)
			state.JustificationsValidators = nil
			root, err = state.HashTreeRoot(p)
			require.NoError(t, err)
			require.Equal(t, root, genesis.StateRoot)
		})
	}
}

// TestNothingIsPastTheRegistryLimit takes everything that has a limit to it and
// one beyond, both ways.
func TestNothingIsPastTheRegistryLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 8, 1000, wire.DefaultRegistryLimit, wire.MaxRegistryLimit - 1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			p, wider := limited(t, limit), limited(t, limit+1)
			last := wire.ValidatorIndex(limit - 1)
			aggregate := func(v wire.ValidatorIndex) *wire.SignedAggregate {
				return &wire.SignedAggregate{Data: sampleData(), Participants: participants(t, v), Proof: []byte{1}}
			}
			a, err := p.DecodeAggregate(must(p.EncodeAggregate(aggregate(last))))
			require.NoError(t, err)
			require.Equal(t, participants(t, last), a.Participants)
			_, err = p.EncodeAggregate(aggregate(last + 1))
			require.ErrorContains(t, err, fmt.Sprintf("in %d bits, profile local allows %d", limit+1, limit))
			_, err = p.DecodeAggregate(must(wider.EncodeAggregate(aggregate(last + 1))))
			requireReason(t, wire.ReasonMalformed, err)

			block := func(entries int, v wire.ValidatorIndex) *wire.SignedBlock {
				sb := &wire.SignedBlock{ProposerSignature: signature(p)}
				sb.Block.Body.Attestations = make([]wire.AggregatedAttestation, entries)
				first := participants(t, 0)
				for i := range sb.Block.Body.Attestations {
					sb.Block.Body.Attestations[i].Participants = first
				}
				sb.Block.Body.Attestations[0].Participants = participants(t, v)

				return sb
			}
			sb, err := p.DecodeBlock(must(p.EncodeBlock(block(limit, last))))
			require.NoError(t, err)
			require.Len(t, sb.Block.Body.Attestations, limit)
			require.Equal(t, participants(t, last), sb.Block.Body.Attestations[0].Participants)
			for _, past := range []*wire.SignedBlock{block(limit+1, 0), block(1, last+1)} {
				_, err = p.EncodeBlock(past)
				require.ErrorContains(t, err, "encode block: ")
				_, err = p.DecodeBlock(must(wider.EncodeBlock(past)))
				requireReason(t, wire.ReasonMalformed, err)
			}

			r := random{rand.New(rand.NewPCG(6, uint64(limit)))}
			state := p.GenesisState(7, r.validators(p, limit+1))
			_, err = state.HashTreeRoot(p)
			require.ErrorContains(t, err, fmt.Sprintf("%d validators, at most %d", limit+1, limit))
			_, _, err = p.GenesisBlock(7, state.Validators)
			require.Error(t, err)
			_, err = p.DecodeState(must(p.EncodeState(state)))
			requireReason(t, wire.ReasonMalformed, err)
			_, err = wider.DecodeState(must(p.EncodeState(state)))
			require.NoError(t, err)
		})
	}
}

// TestTheRegistryLimitIsInRootsAlone compares profiles of one network line that
// differ in the limit: the same bytes, other roots.
func TestTheRegistryLimitIsInRootsAlone(t *testing.T) {
	t.Parallel()
	known, wide := profileNamed(t, "local", ""), limited(t, wire.MaxRegistryLimit)
	require.Equal(t, known, limited(t, wire.DefaultRegistryLimit))
	r := random{rand.New(rand.NewPCG(7, 7))}
	block, state := r.block(t, known), r.state(known)
	block.Block.Body.Attestations = append(block.Block.Body.Attestations, wire.AggregatedAttestation{Participants: participants(t, 5)})
	require.Equal(t, must(known.EncodeBlock(block)), must(wide.EncodeBlock(block)))
	require.NotEqual(t, block.Block.HashTreeRoot(known), block.Block.HashTreeRoot(wide))
	require.Equal(t, must(known.EncodeState(state)), must(wide.EncodeState(state)))
	narrowRoot, err := state.HashTreeRoot(known)
	require.NoError(t, err)
	wideRoot, err := state.HashTreeRoot(wide)
	require.NoError(t, err)
	require.NotEqual(t, narrowRoot, wideRoot)
}

func TestTheRegistryLimitCanBeChosenForLocalAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		profile string
		limit   int
		want    string // "": accepted
	}{
		"one":                     {"local", 1, ""},
		"the largest":             {"local", wire.MaxRegistryLimit, ""},
		"none":                    {"local", 0, "registry limit 0: must be 1 to 16384"},
		"less than none":          {"local", -1, "registry limit -1"},
		"past the largest":        {"local", wire.MaxRegistryLimit + 1, "registry limit 16385"},
		"that of the others":      {"devnet5", 4096, ""},
		"another for devnet5":     {"devnet5", 16384, `registry limit 16384: that of profile "devnet5" is 4096`},
		"another for lean-pq":     {"lean-pq", 64, `that of profile "lean-pq" is 4096`},
		"out of range for either": {"lean-pq", 1 << 40, "must be 1 to 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := profileNamed(t, tt.profile, "")
			got, err := p.WithRegistryLimit(tt.limit)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)

				return
			}
			require.NoError(t, err)
			want := *p
			want.RegistryLimit = tt.limit
			require.Equal(t, &want, got)
			require.Equal(t, wire.DefaultRegistryLimit, p.RegistryLimit, "a copy")
		})
	}
}
