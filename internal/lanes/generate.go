package lanes

// The kernels are written in Go programs below _asm, a module of its own so that avo is no dependency of the node. Each
// writes one assembly file and the declarations that go with it.

//go:generate go run -C _asm ./blake2s -out ../blake2s_amd64.s -stubs ../blake2s_stubs_amd64.go -pkg lanes
//go:generate go run -C _asm ./keccak -out ../keccak_amd64.s -stubs ../keccak_stubs_amd64.go -pkg lanes
