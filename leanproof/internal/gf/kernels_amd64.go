//go:build !purego

package gf

import (
	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/cpu"
)

//go:generate go run -C _asm . -out ../kernels_amd64.s -pkg gf

// The kernels of kernels_amd64.s, with PCLMULQDQ and AVX if the name does not say more. Lengths n are in elements.

// mulCLMUL sets out = a * b.
//
//go:noescape
func mulCLMUL(out, a, b *E)

// mulKCLMUL sets out = a * k.
//
//go:noescape
func mulKCLMUL(out, a *E, k uint64)

// mulBaseCLMUL returns a * b in K.
//
//go:noescape
func mulBaseCLMUL(a, b uint64) uint64

// squareNCLMUL sets out = a^(2^n).
//
//go:noescape
func squareNCLMUL(out, a *E, n int)

// scaleCLMUL sets out[i] = a[i] * by.
//
//go:noescape
func scaleCLMUL(out, a, by *E, n int)

// dotCLMUL sets out to the sum of a[i] * b[i].
//
//go:noescape
func dotCLMUL(out, a, b *E, n int)

// dotKCLMUL sets out to the sum of a[i] * k[i].
//
//go:noescape
func dotKCLMUL(out, a *E, k *uint64, n int)

// dotPlanesCLMUL sets out to the sum of (a0[i], a1[i], a2[i]) * k[i].
//
//go:noescape
func dotPlanesCLMUL(out *E, a0, a1, a2, k *uint64, n int)

// dotColumns1AVX2 is dotPlanesCLMUL with VPCLMULQDQ and AVX2.
//
//go:noescape
func dotColumns1AVX2(out *E, a0, a1, a2, k *uint64, n int)

// dotColumns2AVX2 sets out[j], for j below 2, to the sum of (a0[i], a1[i], a2[i]) * k[j*n + i].
//
//go:noescape
func dotColumns2AVX2(out *E, a0, a1, a2, k *uint64, n int)

// dotColumns1AVX512 is dotPlanesCLMUL with VPCLMULQDQ and AVX-512.
//
//go:noescape
func dotColumns1AVX512(out *E, a0, a1, a2, k *uint64, n int)

// dotColumns4AVX512 sets out[j], for j below 4, to the sum of (a0[i], a1[i], a2[i]) * k[j*n + i].
//
//go:noescape
func dotColumns4AVX512(out *E, a0, a1, a2, k *uint64, n int)

func best() Path {
	x := &cpu.X86
	switch {
	case !x.HasPCLMULQDQ || !x.HasAVX:
		return PathGeneric
	case x.HasAVX512VPCLMULQDQ && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL:
		return PathVPCLMULQDQ512
	case cpuid.CPU.Supports(cpuid.VPCLMULQDQ, cpuid.AVX2): // cpu.X86 does not tell VPCLMULQDQ without AVX-512
		return PathVPCLMULQDQ256
	default:
		return PathPCLMULQDQ
	}
}

// Mul returns a * b.
func Mul(a, b E) (c E) {
	if path < PathPCLMULQDQ {
		return mulGeneric(&a, &b)
	}
	mulCLMUL(&c, &a, &b)
	return c
}

// MulK returns a * k.
func MulK(a E, k uint64) (c E) {
	if path < PathPCLMULQDQ {
		return mulKGeneric(&a, k)
	}
	mulKCLMUL(&c, &a, k)
	return c
}

// MulBase returns a * b in the base field.
func MulBase(a, b uint64) uint64 {
	if path < PathPCLMULQDQ {
		return mulBaseGeneric(a, b)
	}
	return mulBaseCLMUL(a, b)
}

func squareN(a *E, n int) (c E) {
	if path < PathPCLMULQDQ {
		return squareNGeneric(a, n)
	}
	squareNCLMUL(&c, a, n)
	return c
}

func dot(a, b []E) (c E) {
	if path < PathPCLMULQDQ || len(a) == 0 {
		return dotGeneric(a, b)
	}
	dotCLMUL(&c, &a[0], &b[0], len(a))
	return c
}

func dotK(a []E, k []uint64) (c E) {
	if path < PathPCLMULQDQ || len(a) == 0 {
		return dotKGeneric(a, k)
	}
	dotKCLMUL(&c, &a[0], &k[0], len(a))
	return c
}

func dotColumns(out []E, a *Planes, k []uint64) {
	n := len(a[0])
	if path < PathPCLMULQDQ || n == 0 {
		dotColumnsGeneric(out, a, k)
		return
	}
	for len(out) > 0 {
		done := 1
		switch {
		case path < PathVPCLMULQDQ256:
			dotPlanesCLMUL(&out[0], &a[0][0], &a[1][0], &a[2][0], &k[0], n)
		case path < PathVPCLMULQDQ512 && len(out) < 2:
			dotColumns1AVX2(&out[0], &a[0][0], &a[1][0], &a[2][0], &k[0], n)
		case path < PathVPCLMULQDQ512:
			dotColumns2AVX2(&out[0], &a[0][0], &a[1][0], &a[2][0], &k[0], n)
			done = 2
		case len(out) < 4:
			dotColumns1AVX512(&out[0], &a[0][0], &a[1][0], &a[2][0], &k[0], n)
		default:
			dotColumns4AVX512(&out[0], &a[0][0], &a[1][0], &a[2][0], &k[0], n)
			done = 4
		}
		out, k = out[done:], k[done*n:]
	}
}

func scale(out, a []E, by *E) {
	if path < PathPCLMULQDQ || len(a) == 0 {
		scaleGeneric(out, a, by)
		return
	}
	scaleCLMUL(&out[0], &a[0], by, len(a))
}
