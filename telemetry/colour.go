package telemetry

import (
	"bytes"
	"io"
)

// colourWriter paints the level of a text line. slog's handlers write one line a call under their own lock, so the
// buffer needs none.
type colourWriter struct {
	w   io.Writer
	buf []byte
}

// The levels as slog's text handler writes them, and their ANSI colours.
var levelColours = []struct{ text, colour string }{
	{"level=ERROR", "\x1b[31m"},
	{"level=WARN", "\x1b[33m"},
	{"level=INFO", "\x1b[32m"},
	{"level=DEBUG", "\x1b[36m"},
}

// levelWithin is how far into a line the level is looked for: it follows the 29 bytes of the time, and a value later in
// the line may hold the same text.
const levelWithin = 48

func (c *colourWriter) Write(line []byte) (int, error) {
	head := line[:min(len(line), levelWithin)]
	for _, l := range levelColours {
		i := bytes.Index(head, []byte(l.text))
		if i < 0 {
			continue
		}
		c.buf = append(c.buf[:0], line[:i]...)
		c.buf = append(c.buf, l.colour...)
		c.buf = append(c.buf, l.text...)
		c.buf = append(c.buf, "\x1b[0m"...)
		c.buf = append(c.buf, line[i+len(l.text):]...)
		if _, err := c.w.Write(c.buf); err != nil {
			return 0, err
		}
		return len(line), nil
	}
	return c.w.Write(line)
}
