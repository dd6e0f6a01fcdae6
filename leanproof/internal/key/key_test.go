package key_test

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
	"aggnode/leanproof/internal/key"
)

const seed = "d1db6ed45cb0d780a5c4e242df9dcd20aba902097d193bffb19fa7036ee825e4"

func load(t testing.TB) *key.Key {
	t.Helper()
	k, err := key.Load()
	require.NoError(t, err)
	return k
}

func TestSeedIsThatOfTheInstructions(t *testing.T) {
	t.Parallel()
	k := load(t)
	require.Equal(t, seed, hex.EncodeToString(k.Seed[:]))
	require.Equal(t, k.Seed, k.TranscriptSeed())
}

func TestKeysAreFoundBySeed(t *testing.T) {
	t.Parallel()
	k := load(t)
	again, err := key.LoadSeed(k.Seed)
	require.NoError(t, err)
	require.Same(t, k, again)
	_, err = key.LoadSeed([32]byte{1})
	require.ErrorIs(t, err, key.ErrUnknownSeed)
}

// knownPoint is a point with the value that the reference has there.
type knownPoint struct {
	name string
	at   key.Point
	want gf.E
}

func knownPoints(t *testing.T) []knownPoint {
	t.Helper()
	text, err := os.ReadFile("testdata/points.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[2:]
	var out []knownPoint
	const group = 1 + key.ProgramVars + 1
	require.Zero(t, len(lines)%group)
	for ; len(lines) > 0; lines = lines[group:] {
		p := knownPoint{name: lines[0]}
		for i := range p.at.Zeta {
			p.at.Zeta[i] = parseE(t, lines[1+i])
		}
		for i := range p.at.Alpha {
			p.at.Alpha[i] = parseE(t, lines[1+key.ProgramLog+i])
		}
		p.want = parseE(t, lines[group-1])
		out = append(out, p)
	}
	return out
}

func parseE(t *testing.T, s string) gf.E {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 16)
	require.True(t, ok, s)
	limb := func(i uint) uint64 { return new(big.Int).Rsh(n, 64*i).Uint64() }
	return gf.E{C0: limb(0), C1: limb(1), C2: limb(2)}
}

func TestTableHasTheValuesOfTheReference(t *testing.T) {
	t.Parallel()
	k := load(t)
	points := knownPoints(t)
	require.Len(t, points, 11)
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, p.want, k.Evaluate(p.at.Zeta[:], p.at.Alpha[:]))
		})
	}
}

func TestManyPointsHaveTheValuesOfEach(t *testing.T) {
	t.Parallel()
	k := load(t)
	known := knownPoints(t)
	for _, n := range []int{0, 1, 3, 16, 17} {
		points, want := make([]key.Point, n), make([]gf.E, n)
		for i := range points {
			points[i], want[i] = known[i%len(known)].at, known[i%len(known)].want
		}
		got := make([]gf.E, n+1)
		k.EvaluateMany(points, got)
		require.Equal(t, want, got[:n])
		require.True(t, got[n].IsZero(), "nothing is written behind the points' values")
	}
}

func randomPoint(r *rand.Rand) (p key.Point) {
	for _, part := range [][]gf.E{p.Zeta[:], p.Alpha[:]} {
		for i := range part {
			part[i] = gf.E{C0: r.Uint64(), C1: r.Uint64(), C2: r.Uint64()}
		}
	}
	return p
}

func BenchmarkEvaluate(b *testing.B) {
	k := load(b)
	r := rand.New(rand.NewPCG(5, 23))
	for _, n := range []int{1, 2, 8} {
		b.Run(fmt.Sprint("points=", n), func(b *testing.B) {
			points, out := make([]key.Point, n), make([]gf.E, n)
			for i := range points {
				points[i] = randomPoint(r)
			}
			for b.Loop() {
				k.EvaluateMany(points, out)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*b.N), "µs/point")
		})
	}
}
