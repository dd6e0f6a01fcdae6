package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"aggnode/scheduler"
)

// senderCommand is the first argument under which the test binary is the sending process of Pipeline.
const senderCommand = "pipeline-send"

// The test binary serves as the program that has the shim and the sender.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scheduler.ChildExecCommand {
		fmt.Fprintln(os.Stderr, scheduler.ChildExec(os.Args[2:]))
		os.Exit(127)
	}
	if len(os.Args) > 1 && os.Args[1] == senderCommand {
		if err := sendVotes(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func sendVotes(args []string) error {
	var cfg SenderConfig
	f := flag.NewFlagSet(senderCommand, flag.ContinueOnError)
	f.StringVar(&cfg.Capture, "capture", "", "")
	f.StringVar(&cfg.To, "to", "", "")
	f.IntVar(&cfg.Passes, "passes", 0, "")
	f.IntVar(&cfg.Rate, "rate", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	return SendVotes(context.Background(), cfg, os.Stdin, os.Stdout)
}
