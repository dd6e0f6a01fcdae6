package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// senderSlack is added to the votes of a stream for the frames that may wait for the receiver. All of them may: the sender
	// stands for many peers, and what it loses would be laid to the receiver.
	senderSlack = 1024
	// meetTimeout bounds the time until the receiver's subscriptions have come, which takes a few round trips.
	meetTimeout = 30 * time.Second
	// senderTimeout bounds the wait for the next line of the sender beyond the length of its play.
	senderTimeout = meetTimeout + 10*time.Second
)

// SenderConfig says what the sending process does. All fields are required.
type SenderConfig struct {
	Capture string // votes of one slot
	To      string // address of the receiver, with /p2p/
	Passes  int    // how often the votes are sent, each time on another topic
	Rate    int    // votes a second
}

// senderLine is a line of the sender's output.
type senderLine struct {
	Ready bool `json:"ready,omitempty"` // the receiver takes part in all topics
	// After the play:
	Begin time.Time     `json:"begin"`   // when the first vote was due
	Took  time.Duration `json:"took_ns"` // to the last publication
	CPU   time.Duration `json:"cpu_ns"`  // of the process during the play
}

// SendVotes is the sending process: it connects to a receiver, says ready on out, waits for a line on in, publishes the votes
// of the capture at the rate, and reports on out. It returns when in ends, and ends early with ctx.
func SendVotes(ctx context.Context, cfg SenderConfig, in io.Reader, out io.Writer) error {
	messages, err := loadMessages(cfg.Capture)
	if err != nil {
		return err
	}
	lib, err := newBareHost(libp2p.NoListenAddrs)
	if err != nil {
		return err
	}
	defer func() { _ = lib.Close() }() // the process ends with it
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gossip, err := newBareGossip(ctx, lib, cfg.Passes, cfg.Passes*len(messages)+senderSlack)
	if err != nil {
		return err
	}
	to, err := peer.AddrInfoFromString(cfg.To)
	if err != nil {
		return fmt.Errorf("read the receiver's address: %w", err)
	}
	topics := make([]*pubsub.Topic, cfg.Passes)
	for pass := range topics {
		// For publishing alone: a mesh would only add control messages both ways.
		if topics[pass], err = gossip.Join(voteTopic(pass), pubsub.FanoutOnly()); err != nil {
			return err
		}
	}
	if err := lib.Connect(ctx, *to); err != nil {
		return fmt.Errorf("connect to the receiver: %w", err)
	}
	if err := awaitSubscriptions(ctx, topics); err != nil {
		return err
	}
	e := json.NewEncoder(out)
	if err := e.Encode(senderLine{Ready: true}); err != nil {
		return err
	}
	commands := bufio.NewScanner(in)
	if !commands.Scan() {
		return commands.Err() // not wanted any more
	}
	report, err := play(ctx, topics, messages, cfg.Rate)
	if err != nil {
		return err
	}
	if err := e.Encode(report); err != nil {
		return err
	}
	for commands.Scan() { // what was published may still be on its way: stay until the receiver has it
	}
	return commands.Err()
}

func loadMessages(file string) ([][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	c, err := NewCaptureReader(f)
	if err != nil {
		return nil, err
	}
	var messages [][]byte
	for {
		record, err := c.Next()
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, record.Message)
	}
}

// awaitSubscriptions returns when the receiver takes part in all topics.
func awaitSubscriptions(ctx context.Context, topics []*pubsub.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, meetTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for _, t := range topics {
		for len(t.ListPeers()) == 0 {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return fmt.Errorf("wait for the receiver to subscribe %s: %w", t, ctx.Err())
			}
		}
	}
	return nil
}

// play publishes. A vote that is due while the process sleeps goes out when it wakes, so votes leave in small bursts.
func play(ctx context.Context, topics []*pubsub.Topic, messages [][]byte, rate int) (senderLine, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	cpu := ownCPU()
	begin := time.Now()
	for pass, topic := range topics {
		for i, m := range messages {
			if !waitUntil(ctx, timer, begin.Add(atRate(pass*len(messages)+i, rate))) {
				return senderLine{}, ctx.Err()
			}
			if err := topic.Publish(ctx, m); err != nil {
				return senderLine{}, fmt.Errorf("publish vote %d of pass %d: %w", i, pass, err)
			}
		}
	}
	return senderLine{Begin: begin, Took: time.Since(begin), CPU: ownCPU() - cpu}, nil
}

// sender is the sending process as seen from here. Owned by one goroutine.
type sender struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan senderLine // one at a time: the process is asked before it answers
	ended chan error      // one value: how the process ended
}

// startSender starts the process and waits until it is connected.
func startSender(ctx context.Context, command []string, cfg SenderConfig) (*sender, error) {
	args := append(command[1:len(command):len(command)],
		"--capture", cfg.Capture, "--to", cfg.To, "--passes", fmt.Sprint(cfg.Passes), "--rate", fmt.Sprint(cfg.Rate))
	s := &sender{cmd: exec.CommandContext(ctx, command[0], args...), lines: make(chan senderLine), ended: make(chan error, 1)}
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.in = in
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sender: %w", err)
	}
	go s.read(ctx, out)
	if _, err := s.next(ctx, senderTimeout); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// read passes the lines on until the process closes its output, and reaps it.
func (s *sender) read(ctx context.Context, out io.Reader) {
	defer close(s.lines)
	d := json.NewDecoder(out)
	for {
		var l senderLine
		if err := d.Decode(&l); err != nil {
			break // io.EOF, or a process that ends in the middle of a line
		}
		select {
		case s.lines <- l:
		case <-ctx.Done():
		}
	}
	s.ended <- s.cmd.Wait()
}

// next returns the next line.
func (s *sender) next(ctx context.Context, within time.Duration) (senderLine, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case l, ok := <-s.lines:
		if !ok {
			return l, errors.New("the sender ended")
		}
		return l, nil
	case <-timer.C:
		return senderLine{}, fmt.Errorf("the sender was silent for %s", within)
	case <-ctx.Done():
		return senderLine{}, ctx.Err()
	}
}

// play has the votes sent, which takes at least length, and returns the sender's report.
func (s *sender) play(ctx context.Context, length time.Duration) (senderLine, error) {
	if _, err := io.WriteString(s.in, "go\n"); err != nil {
		return senderLine{}, fmt.Errorf("command the sender: %w", err)
	}
	return s.next(ctx, length+senderTimeout)
}

// stop ends the process, which leaves when its input ends, and waits for it.
func (s *sender) stop() error {
	_ = s.in.Close() // it may have ended already
	kill := time.AfterFunc(senderTimeout, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	for range s.lines { // a line that nobody waited for must not hold up the reader
	}
	if err := <-s.ended; err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	return nil
}
