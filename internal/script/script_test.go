package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calculator adds numbers and says each sum.
type calculator struct {
	sum  int
	said []string
}

func (c *calculator) do(words []string) {
	c.sum += len(words) - 1
	c.said = append(c.said, words[0]+" "+strings.Repeat("|", c.sum))
}

func (c *calculator) happened() []string {
	said := c.said
	c.said = nil
	return said
}

func run(_ *testing.T, text string) string {
	c := new(calculator)
	return Steps(text, c.do, c.happened)
}

func TestScriptsAreExecutedAndCompared(t *testing.T) {
	t.Parallel()
	Files(t, false, run)
}

func TestWhatHappenedIsWrittenAnew(t *testing.T) {
	t.Parallel()
	want := "# two steps\nadd 1 1\nadd 1\n----\nadd ||\nadd |||\n\nadd\n----\nadd |||\n"
	for _, text := range []string{
		want, "# two steps\nadd 1 1\nadd 1\n\nadd\n", "\n# two steps\nadd 1 1\nadd 1\n----\nold\n\nadd\n----\n\n",
	} {
		require.Equal(t, want, run(t, text))
	}
}
