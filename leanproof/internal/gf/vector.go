package gf

// Dot returns the sum of a[i] * b[i]. b has at least the length of a, else Dot panics.
func Dot(a, b []E) E {
	need(len(b), len(a))
	return dot(a, b)
}

// DotK returns the sum of a[i] * k[i], with k in the base field. k has at least the length of a, else DotK panics.
func DotK(a []E, k []uint64) E {
	need(len(k), len(a))
	return dotK(a, k)
}

// Planes is a vector of elements by limbs: element i is {p[0][i], p[1][i], p[2][i]}. It suits kernels that take many elements
// at once.
type Planes [3][]uint64

// DotColumns sets out[j] to the sum over i of a[i] * k[j*n + i], with k in the base field and n the length of each plane: k has
// a column of n words for each element of out. DotColumns panics if planes or k are shorter.
func DotColumns(out []E, a *Planes, k []uint64) {
	n := len(a[0])
	need(len(a[1]), n)
	need(len(a[2]), n)
	need(len(k), n*len(out))
	dotColumns(out, a, k)
}

// Scale sets out[i] = a[i] * by. out has at least the length of a, else Scale panics; it is a itself or does not overlap it.
func Scale(out, a []E, by E) {
	need(len(out), len(a))
	scale(out, a, &by)
}

// EqTable sets out[j], for the 2^len(point) values of j, to the product over i of point[i] where bit i of j is set and
// 1 + point[i] where it is not: the Lagrange basis of the cube at point, low bit first. out has at least that length, else
// EqTable panics.
func EqTable(point, out []E) {
	need(len(out), 1<<len(point))
	out[0] = One
	for i := range point {
		n := 1 << i
		low, high := out[:n], out[n:2*n]
		Scale(high, low, point[i])
		for j := range low {
			low[j] = Add(low[j], high[j])
		}
	}
}

// Eq returns the product over i of 1 + a[i] + b[i]: the value at b of the Lagrange basis element of a, and the other way
// round. b has at least the length of a, else Eq panics.
func Eq(a, b []E) E {
	need(len(b), len(a))
	r := One
	for i := range a {
		r = Mul(r, AddBase(Add(a[i], b[i]), 1))
	}
	return r
}

func need(have, want int) {
	if have < want {
		panic("gf: a slice is shorter than the one it goes with")
	}
}
