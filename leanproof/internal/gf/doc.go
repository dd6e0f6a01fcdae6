// Package gf is the arithmetic of the two binary fields of lean-pq proofs.
//
//   - K = GF(2^64) = GF(2)[x] / (x^64 + x^4 + x^3 + x + 1). An element is a uint64, bit i is the coefficient of x^i. The
//     committed data of a proof is in K; its generator g is x, the number 2.
//   - E = GF(2^192) = K[y] / (y^3 + y + 1). An element is three words, the coefficients of 1, y and y^2. Challenges and what
//     is computed from them are in E.
//
// Addition is exclusive or in both, so an element is its own negative and there is no carry. Every uint64 and every E is a
// reduced element: nothing here can fail but Inverse of zero, which is zero.
//
// All of it works on public values (a verifier has no secrets), so running time may depend on them. On amd64 with PCLMULQDQ
// products are in assembly, with VPCLMULQDQ and AVX2 or AVX-512 also the long sums, several at a time; the build tag purego leaves the portable form,
// which gives the same results.
//
// All functions are pure and may be called concurrently. Slices are only read, except those named out.
//
// Source: the field description of leanVM (commit a39758de), as used by py-lean-pq 0.7.0.
package gf
