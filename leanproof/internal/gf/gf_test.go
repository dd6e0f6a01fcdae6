package gf_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aggnode/leanproof/internal/gf"
)

// edges are words at which a kernel that drops or doubles a bit shows it.
var edges = []uint64{0, 1, 2, 3, 0x1b, 1 << 63, 0xf << 60, 1<<60 - 1, 0xffffffff, 0xffffffff << 32, ^uint64(0)}

func randomE(r *rand.Rand) gf.E { return gf.E{C0: r.Uint64(), C1: r.Uint64(), C2: r.Uint64()} }

// sample gives elements of edge words and of random words in turn.
func sample(r *rand.Rand, n int) []gf.E {
	out := make([]gf.E, n)
	for i := range out {
		out[i] = randomE(r)
		if i%2 == 0 {
			edge := func() uint64 { return edges[r.IntN(len(edges))] }
			out[i] = gf.E{C0: edge(), C1: edge(), C2: edge()}
		}
	}
	return out
}

func parseE(t *testing.T, s string) gf.E {
	t.Helper()
	var e [3]uint64
	for i, limb := range strings.SplitN(s, ",", 3) {
		w, err := strconv.ParseUint(limb, 16, 64)
		require.NoError(t, err)
		e[i] = w
	}
	return gf.E{C0: e[0], C1: e[1], C2: e[2]}
}

func productsAreThoseOfTheReference(t *testing.T) {
	text, err := os.ReadFile("testdata/products.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	require.Len(t, lines, 200)
	for _, line := range lines {
		f := strings.Fields(line)
		a, b, want := parseE(t, f[0]), parseE(t, f[1]), parseE(t, f[2])
		require.Equal(t, want, gf.Mul(a, b), line)
		if b.InBase() {
			require.Equal(t, want, gf.MulK(a, b.C0), line)
		}
		if a.InBase() && b.InBase() {
			require.Equal(t, want, gf.FromBase(gf.MulBase(a.C0, b.C0)), line)
		}
	}
}

func fieldLawsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 192))
	for _, a := range sample(r, 60) {
		b, c := randomE(r), randomE(r)
		require.Equal(t, gf.Mul(a, b), gf.Mul(b, a), "a*b = b*a")
		require.Equal(t, gf.Mul(gf.Mul(a, b), c), gf.Mul(a, gf.Mul(b, c)), "(a*b)*c = a*(b*c)")
		require.Equal(t, gf.Add(gf.Mul(a, b), gf.Mul(a, c)), gf.Mul(a, gf.Add(b, c)), "a*b + a*c = a*(b + c)")
		require.Equal(t, gf.Mul(a, a), gf.Square(a), "the square")
		require.Equal(t, a, gf.Mul(a, gf.One), "one")
		require.Equal(t, gf.Mul(a, gf.FromBase(b.C0)), gf.MulK(a, b.C0), "a product with an element of K")
		if !a.IsZero() {
			require.Equal(t, gf.One, gf.Mul(a, gf.Inverse(a)), "a * 1/a")
		}
	}
	require.Equal(t, gf.E{}, gf.Inverse(gf.E{}), "1/0 is zero")
	require.Equal(t, gf.E{C0: 1, C1: 1}, gf.Mul(gf.E{C1: 1}, gf.E{C2: 1}), "y^3 = y + 1")
}

func generatorHasFullOrder(t *testing.T) {
	const order = ^uint64(0) // 2^64 - 1
	require.Equal(t, uint64(1), gf.PowGenerator(order))
	for _, p := range []uint64{3, 5, 17, 257, 641, 65537, 6700417} {
		require.NotEqual(t, uint64(1), gf.PowGenerator(order/p), "order divides (2^64-1)/%d", p)
	}
	require.Equal(t, uint64(1), gf.PowGenerator(0))
	require.Equal(t, uint64(0x1b), gf.PowGenerator(64))
}

func vectorFormsAreSumsOfProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 192))
	lengths := []int{63, 64, 65, 127, 128, 129, 1000}
	for n := range 40 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a, b := sample(r, n), sample(r, n+n%3) // b may be longer
			k := make([]uint64, n)
			planes := gf.Planes{make([]uint64, n), make([]uint64, n), make([]uint64, n)}
			var dot, dotK gf.E
			for i := range a {
				k[i] = b[i].C2
				planes[0][i], planes[1][i], planes[2][i] = a[i].C0, a[i].C1, a[i].C2
				dot = gf.Add(dot, gf.Mul(a[i], b[i]))
				dotK = gf.Add(dotK, gf.MulK(a[i], k[i]))
			}
			require.Equal(t, dot, gf.Dot(a, b))
			require.Equal(t, dotK, gf.DotK(a, k))
			columns, two := slices.Concat(k, make([]uint64, n), k, k, k, k, k), gf.FromBase(2)
			for i := range n {
				columns[n+i] = gf.MulBase(k[i], 2)
			}
			sums := make([]gf.E, 8)
			gf.DotColumns(sums[:7], &planes, columns)
			require.Equal(t, []gf.E{dotK, gf.Mul(dotK, two), dotK, dotK, dotK, dotK, dotK, {}}, sums)

			by, behind := randomE(r), randomE(r)
			out := append(make([]gf.E, n), behind)
			gf.Scale(out, a, by)
			for i := range a {
				require.Equal(t, gf.Mul(a[i], by), out[i])
			}
			require.Equal(t, behind, out[n], "nothing is written behind the products")
			gf.Scale(a, a, by)
			require.Equal(t, out[:n], a, "in place")

			power := by
			for range n {
				power = gf.Mul(power, power)
			}
			require.Equal(t, power, gf.SquareN(by, n))
		})
	}
}

func eqTableIsTheLagrangeBasis(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 192))
	for n := range 9 {
		point := sample(r, n)
		table := make([]gf.E, 1<<n)
		gf.EqTable(point, table)
		var sum gf.E
		for j, got := range table {
			corner := make([]gf.E, n)
			for i := range corner {
				corner[i] = gf.FromBase(uint64(j >> i & 1))
			}
			require.Equal(t, gf.Eq(point, corner), got, "entry %d of %d variables", j, n)
			sum = gf.Add(sum, got)
		}
		require.Equal(t, gf.One, sum, "the basis sums to one")
	}
}

// Each path is set for the whole package, so its tests run one after another.
func TestOnEachPath(t *testing.T) {
	gf.OnEachPath(t, func(t *testing.T) {
		t.Run("products are those of the reference", productsAreThoseOfTheReference)
		t.Run("field laws hold", fieldLawsHold)
		t.Run("the generator has full order", generatorHasFullOrder)
		t.Run("vector forms are sums of products", vectorFormsAreSumsOfProducts)
		t.Run("the eq table is the Lagrange basis", eqTableIsTheLagrangeBasis)
	})
}

func TestShortSecondOperandPanics(t *testing.T) {
	t.Parallel()
	a := make([]gf.E, 3)
	require.Panics(t, func() { gf.Dot(a, a[:2]) })
	require.Panics(t, func() { gf.DotK(a, make([]uint64, 2)) })
	require.Panics(t, func() { gf.Scale(a[:2], a, gf.One) })
	require.Panics(t, func() { gf.EqTable(a, make([]gf.E, 7)) })
	require.Panics(t, func() { gf.Eq(a, a[:2]) })
	planes := gf.Planes{make([]uint64, 3), make([]uint64, 3), make([]uint64, 2)}
	require.Panics(t, func() { gf.DotColumns(a[:1], &planes, make([]uint64, 3)) })
	planes[2] = make([]uint64, 3)
	require.Panics(t, func() { gf.DotColumns(a[:2], &planes, make([]uint64, 5)) })
}
