// Command gen makes the trace that package bench embeds, or checks that the one on disk is what it would make.
//
//	go run ./bench/gen [-check] [-prover-dir DIR]
//
// It needs the environment of `aggnode prover install`. About 40 s on two cores.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"aggnode/bench"
	"aggnode/prover"
)

func main() {
	check := flag.Bool("check", false, "compare the trace on disk instead of writing it")
	file := flag.String("file", filepath.Join("bench", "testdata", "trace", "lean-pq.capture"), "the trace")
	dir := flag.String("prover-dir", "", "environment made by `aggnode prover install`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, dir string, check bool) error {
	env, err := prover.Locate(dir)
	if err != nil {
		return err
	}
	command, environ, err := prover.LeanPQ(env)
	if err != nil {
		return err
	}
	maker, err := prover.New(prover.Config{Command: command, Env: environ, Role: prover.RoleProve})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1) // one value
	go func() { done <- maker.Run(ctx) }()
	made, err := generate(ctx, maker)
	cancel()
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	if !check {
		return os.WriteFile(file, made, 0o644)
	}
	onDisk, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(made, onDisk) {
		return fmt.Errorf("%s is not what this program makes", file)
	}
	fmt.Println(file, "is as made")
	return nil
}

func generate(ctx context.Context, maker *prover.Client) ([]byte, error) {
	if err := maker.WaitReady(ctx); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := bench.GenerateTrace(ctx, &b, maker, os.Stderr)
	return b.Bytes(), err
}
