package lanes_test

import (
	"fmt"
	"os"
	"strconv"
)

// differentialCases is the number of random inputs that each kernel is compared with another implementation on: few in a
// normal run, LANES_CASES for a long one (make nightly).
var differentialCases = casesFrom(os.Getenv("LANES_CASES"))

func casesFrom(s string) int {
	if s == "" {
		return 200
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("LANES_CASES=%q is no count", s))
	}
	return n
}
