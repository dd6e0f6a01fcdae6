package devnet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a node may take to drain after SIGTERM before it is killed. Its own bounds add up to less.
	stopGrace = 15 * time.Second

	// maxLogLine bounds the memory of one log line; the rest of a longer line is dropped.
	maxLogLine = 64 << 10

	// keptErrors is the number of error lines that are shown in the summary.
	keptErrors = 20
)

// forker starts processes from one locked thread. The parent-death signal of a child follows the thread that forked
// it, not the process, so that thread must live as long as the children do.
type forker struct {
	jobs chan func()
	done chan struct{}
}

func newForker() *forker {
	f := &forker{jobs: make(chan func()), done: make(chan struct{})} // unbuffered: start waits for the fork
	go func() {
		defer close(f.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range f.jobs {
			job()
		}
	}()
	return f
}

func (f *forker) start(cmd *exec.Cmd) error {
	errs := make(chan error, 1)
	f.jobs <- func() { errs <- cmd.Start() }
	return <-errs
}

func (f *forker) stop() {
	close(f.jobs)
	<-f.done
}

// process is one running node.
type process struct {
	name    string
	dataDir string
	cmd     *exec.Cmd
	log     *errorLog
	exited  chan struct{} // closed after Wait
	waitErr error         // valid after exited
	stopped atomic.Bool   // we asked it to stop
}

// errorLog collects error-level log lines and unexpected exits of all processes.
type errorLog struct {
	count atomic.Int64

	mu    sync.Mutex
	lines []string // guarded by mu, at most keptErrors
}

func (l *errorLog) add(name, text string) {
	l.count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < keptErrors {
		l.lines = append(l.lines, name+": "+text)
	}
}

func (l *errorLog) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// startProcess runs `executable args…` with its output in dataDir/stdout.log and counts its error lines. environ is the whole
// environment, nil for that of this process.
func startProcess(f *forker, executable, name, dataDir string, args, environ []string, log *errorLog) (*process, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory of %s: %w", name, err)
	}
	file, err := os.Create(filepath.Join(dataDir, "stdout.log"))
	if err != nil {
		return nil, fmt.Errorf("make the log of %s: %w", name, err)
	}
	cmd := exec.Command(executable, args...)
	cmd.Env = environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the output of %s: %w", name, err), file.Close())
	}
	cmd.Stderr = cmd.Stdout
	if err := f.start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), file.Close())
	}
	p := &process{name: name, dataDir: dataDir, cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		copyLog(file, out, name, log)
		p.waitErr = cmd.Wait()
		if !p.stopped.Load() {
			log.add(name, fmt.Sprintf("ended by itself: %v (log: %s)", cmd.ProcessState, file.Name()))
		}
		if err := file.Close(); err != nil {
			log.add(name, err.Error())
		}
	}()
	return p, nil
}

// copyLog writes lines to file and counts those of level error. Nodes log JSON, one object a line.
func copyLog(file io.Writer, r io.Reader, name string, log *errorLog) {
	br := bufio.NewReaderSize(r, maxLogLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			if _, werr := file.Write(line); werr != nil {
				log.add(name, "write log: "+werr.Error())
			}
			if bytes.Contains(line, []byte(`"level":"ERROR"`)) || bytes.HasPrefix(line, []byte("panic:")) || bytes.HasPrefix(line, []byte("fatal error:")) {
				log.add(name, strings.TrimSpace(string(line)))
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// stop asks the process to drain, waits and kills its group if it does not.
func (p *process) stop(ctx context.Context) {
	p.stopped.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // already gone is fine
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.exited:
	case <-grace.C:
		p.log.add(p.name, fmt.Sprintf("did not stop within %v of SIGTERM and was killed", stopGrace))
	case <-ctx.Done():
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
}

// stopAll stops all processes at once and waits for all.
func stopAll(ctx context.Context, procs []*process) {
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { p.stop(ctx) })
	}
	wg.Wait()
}
