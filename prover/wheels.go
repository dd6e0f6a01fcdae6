package prover

import (
	"fmt"
	"strings"
)

// wheel is one published build of py-lean-pq LeanPQVersion for Linux (manylinux_2_17).
type wheel struct {
	tag    string // of the interpreter: "cp312" is CPython 3.12
	arch   string // as Python names it
	sha256 string
}

// wheels are all builds that may be installed; any other bytes are refused.
var wheels = []wheel{
	{"cp311", "x86_64", "bef8c66667a777642e56520c04dfe555818c81d688dc6d0990d05178e62d4abd"},
	{"cp311", "aarch64", "3a95171ab586e9a30f2d9e96ccc82672d8a5fdfcdbed8f2c7bae847901523f5a"},
	{"cp312", "x86_64", "adf14afc78656e06d92a5bfb0c527824bd8c99a5b9efa74cce8ea83bbad949b4"},
	{"cp312", "aarch64", "8955f21a0dbd79fc6bdfef8d0ca9e8d10e9fdd239e90615e04453fba83581ef1"},
	{"cp313", "x86_64", "b32cae1b553b848382a1e3f7a4a6e8b90345857e77f05b283070655451b2fa61"},
	{"cp313", "aarch64", "34d952172dd545b7e673ae671a529a5c4ec9d4f794e0df33431b3e5f50eb5181"},
	{"cp314", "x86_64", "4f3d838957e8717f8c248ee425b5ab931e6a870d910578231aecbb31588e277c"},
	{"cp314", "aarch64", "dbd26b89cd325175ae871449e3605d0066cc121306b6f5d878e733192a59585d"},
}

// requirements is the file that pip installs from: with --require-hashes nothing but these builds passes.
func requirements() string {
	var b strings.Builder
	fmt.Fprintf(&b, "py-lean-pq==%s", LeanPQVersion)
	for _, w := range wheels {
		fmt.Fprintf(&b, " \\\n    --hash=sha256:%s", w.sha256)
	}
	return b.String() + "\n"
}

// wheelBySum finds the build with a given SHA-256, in hexadecimal.
func wheelBySum(sum string) (wheel, bool) {
	for _, w := range wheels {
		if w.sha256 == sum {
			return w, true
		}
	}
	return wheel{}, false
}
