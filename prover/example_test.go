package prover_test

import (
	"bytes"
	"fmt"

	"aggnode/prover"
)

// A merge job claims the union of what its inputs claim, each key once and in order.
func ExampleJob_Claim() {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, prover.PublicKeySize) }
	child := prover.Claim{Epoch: 7, SignerSet: prover.NewSignerSet([][]byte{key(3), key(1)})}
	job := prover.Job{
		Epoch:    7,
		Raw:      []prover.Raw{{PublicKey: key(2), Signature: []byte("a signature of the scheme")}},
		Children: []prover.Child{{Claim: child, Proof: []byte("a proof of the backend")}},
	}
	claim := job.Claim()
	for i := range claim.Signers() {
		fmt.Printf("%x\n", claim.Key(i)[:4])
	}
	// Output:
	// 01010101
	// 02020202
	// 03030303
}

func ExampleNewSignerSet() {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, prover.PublicKeySize) }
	set := prover.NewSignerSet([][]byte{key(9), key(4), key(9)})
	fmt.Println(len(set)/prover.PublicKeySize, set[0])
	// Output: 2 4
}
