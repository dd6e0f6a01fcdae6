//go:build !amd64 || purego

package gf

func best() Path { return PathGeneric }

// Mul returns a * b.
func Mul(a, b E) E { return mulGeneric(&a, &b) }

// MulK returns a * k.
func MulK(a E, k uint64) E { return mulKGeneric(&a, k) }

// MulBase returns a * b in the base field.
func MulBase(a, b uint64) uint64 { return mulBaseGeneric(a, b) }

func squareN(a *E, n int) E { return squareNGeneric(a, n) }

func dot(a, b []E) E { return dotGeneric(a, b) }

func dotK(a []E, k []uint64) E { return dotKGeneric(a, k) }

func dotColumns(out []E, a *Planes, k []uint64) { dotColumnsGeneric(out, a, k) }

func scale(out, a []E, by *E) { scaleGeneric(out, a, by) }
