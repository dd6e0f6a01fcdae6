package main

import (
	"os"
	"testing"
)

// asProgram makes the test binary the program itself.
const asProgram = "AGGNODE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}
