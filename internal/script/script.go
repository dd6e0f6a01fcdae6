package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// separator stands between the commands of a step and what happened.
const separator = "----"

// Files runs each script of testdata as a parallel test of its name. run executes a text and returns it with what happened;
// that must be the text itself, unless update says that it becomes it.
func Files(t *testing.T, update bool, run func(t *testing.T, text string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			out := run(t, string(text))
			if update {
				require.NoError(t, os.WriteFile(file, []byte(out), 0o644))
				return
			}
			require.Equal(t, string(text), out)
		})
	}
}

// Steps executes the steps of a text: do with the words of each command, of which there is at least one, then happened,
// which returns the lines since it was called last. It returns the text with those lines.
func Steps(text string, do func(words []string), happened func() []string) string {
	var out strings.Builder
	for i, step := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, _ := strings.Cut(step, "\n"+separator)
		for line := range strings.SplitSeq(commands, "\n") {
			out.WriteString(line + "\n")
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
				do(words)
			}
		}
		out.WriteString(separator + "\n")
		for _, line := range happened() {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
