package prover

import (
	"bufio"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// stderrTailBytes is how much of a child's last words a CrashError keeps.
	stderrTailBytes = 2 << 10
	// stderrLineBytes cuts a line; what follows on it is dropped.
	stderrLineBytes = 400
	// stderrLines is how many lines a child may write to the log in one stderrWindow; the others are counted.
	stderrLines  = 10
	stderrWindow = 10 * time.Second
)

// stderrLog turns what a child writes to its standard output and error into bounded log lines and a tail.
type stderrLog struct {
	log *slog.Logger

	mu   sync.Mutex
	tail []string // guarded by mu; at most stderrTailBytes in all
	size int      // guarded by mu
}

// drain reads until the end or an error of r. A flood costs CPU here but never memory or log space.
func (s *stderrLog) drain(r io.Reader) {
	in := bufio.NewReaderSize(r, 4<<10)
	windowStart, lines, dropped := time.Now(), 0, 0
	for {
		line, err := readLine(in)
		if line != "" {
			s.remember(line)
			if now := time.Now(); now.Sub(windowStart) > stderrWindow {
				if dropped > 0 {
					s.log.Warn("prover child wrote more than is logged", "dropped", dropped)
				}
				windowStart, lines, dropped = now, 0, 0
			}
			if lines < stderrLines {
				lines++
				s.log.Warn("prover child says", "text", line)
			} else {
				dropped++
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine returns the next line, cut to stderrLineBytes, without its end.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := stderrLineBytes - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return strings.ToValidUTF8(strings.TrimSpace(string(line)), "?"), err
	}
}

func (s *stderrLog) remember(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = append(s.tail, line)
	s.size += len(line)
	for s.size > stderrTailBytes {
		s.size -= len(s.tail[0])
		s.tail = s.tail[1:]
	}
}

func (s *stderrLog) lastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}
