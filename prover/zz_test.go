package prover_test
import ("testing";"os";"aggnode/prover";"github.com/stretchr/testify/require")
func TestConf(t *testing.T) {
	cmd, env, err := prover.LeanPQ(prover.FromPython(os.Getenv("AGGNODE_TEST_LEANPQ_PYTHON")))
	require.NoError(t, err)
	_, err = prover.Conformance(t.Context(), prover.Config{Command: cmd, Env: env}, os.Stdout)
	require.NoError(t, err)
}
