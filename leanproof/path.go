package leanproof

import "aggnode/leanproof/internal/gf"

// Path names the instructions that the arithmetic of the check uses on this machine.
func Path() string { return gf.Current().String() }
