package xmss_test

import (
	"context"
	"fmt"

	"aggnode/xmss"
)

func ExampleGenerate() {
	ctx := context.Background()
	seed := [xmss.SeedSize]byte{1, 2, 3} // from a random source, and kept secret
	key, err := xmss.Generate(ctx, xmss.Blake2s, seed, 0, 99, xmss.GenerateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := [xmss.MessageSize]byte{42}
	signature, err := key.Sign(ctx, 7, message) // once an epoch: the caller keeps the mark
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(signature), key.Scheme().Verify(key.PublicKey(), 7, message, signature))
	fmt.Println(key.Scheme().Verify(key.PublicKey(), 8, message, signature) != nil)
	_, err = key.Sign(ctx, 100, message)
	fmt.Println(err)
	// Output:
	// 1208 <nil>
	// true
	// epoch outside the range of the key: 100 is not in 0 to 99
}

func ExampleScheme_VerifyBatch() {
	ctx := context.Background()
	key, err := xmss.Generate(ctx, xmss.Blake2s, [xmss.SeedSize]byte{1}, 0, 9, xmss.GenerateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := [xmss.MessageSize]byte{42}
	known := map[xmss.UpperKey]*xmss.Upper{} // a cache of the caller
	for epoch := uint32(0); epoch < 3; epoch++ {
		signature, err := key.Sign(ctx, epoch, message)
		if err != nil {
			fmt.Println(err)
			return
		}
		checks := []xmss.Check{{
			PublicKey: key.PublicKey(), Epoch: epoch, Message: message, Signature: signature,
			Known: known[xmss.Blake2s.UpperKey(key.PublicKey(), epoch)],
		}}
		answers := make([]xmss.Answer, len(checks))
		xmss.Blake2s.VerifyBatch(checks, answers)
		if u := answers[0].Upper; u != nil {
			known[u.Key()] = u
		}
		fmt.Println(answers[0].Err, answers[0].Upper != nil)
	}
	// Output:
	// <nil> true
	// <nil> false
	// <nil> false
}
