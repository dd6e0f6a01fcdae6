package leanproof_test

import (
	"context"
	"fmt"
	"os"

	"aggnode/leanproof"
)

// A node knows which claims an aggregate must make, and asks whether the proof proves exactly these.
func ExampleVerifier_Verify() {
	verifier, err := leanproof.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	proof, err := os.ReadFile("testdata/proofs/eight.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Here the claims are taken from the proof; a node has them from the signer set and the attestation data.
	claims, err := leanproof.ParseClaims(proof)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(claims.XMSS), "claims:", verifier.Verify(context.Background(), proof, claims))

	claims.XMSS[0].Message[0] ^= 1
	fmt.Println("others:", verifier.Verify(context.Background(), proof, claims))
	// Output:
	// 8 claims: <nil>
	// others: check proof: claims: the proof does not make exactly the wanted claims
}

// Tools that show what a proof proves do not know its claims beforehand.
func ExampleVerifier_Check() {
	verifier, err := leanproof.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	proof, err := os.ReadFile("testdata/proofs/sph.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := verifier.Check(context.Background(), proof)
	fmt.Println(len(claims.XMSS), "of leanXMSS,", len(claims.SPHINCS), "of leanSPHINCS:", err)

	proof[len(proof)/2] ^= 1
	_, err = verifier.Check(context.Background(), proof)
	fmt.Println("altered:", err)
	// Output:
	// 2 of leanXMSS, 1 of leanSPHINCS: <nil>
	// altered: check proof: opening: the opened rows do not hash to the root
}
