// Command aggnode is a standalone aggregator node for Lean Ethereum devnets.
//
// This package holds flags, configuration layers and output; everything else
// lives in the packages it calls. One file per command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"aggnode/scheduler"
)

// exitError ends the program with a code of its own; the message was already printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	os.Exit(run())
}

func run() int {
	if len(os.Args) > 1 && os.Args[1] == scheduler.ChildExecCommand {
		// Before anything else: this process becomes another program within microseconds.
		err := scheduler.ChildExec(os.Args[2:])
		fmt.Fprintln(os.Stderr, "aggnode child-exec:", err)
		return 127
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := newRoot().ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	default:
		fmt.Fprintln(os.Stderr, "aggnode:", err)
		return 1
	}
}
