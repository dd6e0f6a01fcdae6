package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/knadh/koanf/providers/file"
	"github.com/spf13/pflag"

	"aggnode/scheduler"
)

// settleTime is how long the settings file must stay as it is before it is read: who writes it in place empties it
// first, and an empty file means no limits.
const settleTime = 200 * time.Millisecond

// budgetSetter takes a budget while the node runs.
type budgetSetter interface {
	SetBudget(ctx context.Context, b scheduler.Budget, cause scheduler.Cause) (scheduler.Change, error)
}

// reloadBudget reads the settings again on SIGHUP and when the settings file changes, and puts their budget in force. The
// other settings are fixed at start. It blocks until ctx ends. Layers are the same as at start: a flag still wins over
// the file.
func reloadBudget(ctx context.Context, f *pflag.FlagSet, path string, node budgetSetter, log *slog.Logger) {
	hup := make(chan os.Signal, 1) // one place: a second signal before the first was read adds nothing
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	followBudget(ctx, f, path, hup, node, log)
}

// followBudget is reloadBudget with the signals given.
func followBudget(ctx context.Context, f *pflag.FlagSet, path string, hup <-chan os.Signal, node budgetSetter, log *slog.Logger) {
	changed := make(chan struct{}, 1) // one place, for the same reason
	if path != "" {
		provider := file.Provider(path)
		err := provider.Watch(func(_ any, err error) {
			if err != nil {
				log.Warn("the settings file is not watched any more; SIGHUP still works", "file", path, "error", err)
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		if err != nil {
			log.Warn("the settings file is not watched; SIGHUP still works", "file", path, "error", err)
		} else {
			defer func() { _ = provider.Unwatch() }()
		}
	}
	settled := time.NewTimer(time.Hour)
	defer settled.Stop()
	settled.Stop()
	for {
		cause := scheduler.CauseSignal
		select {
		case <-ctx.Done():
			return
		case <-changed:
			settled.Reset(settleTime)
			continue
		case <-settled.C:
			cause = scheduler.CauseFile
		case <-hup:
		}
		change, err := readBudget(ctx, f, node, cause)
		switch {
		case err != nil:
			log.Warn("settings not taken, the budget stays", "cause", cause.String(), "error", err)
		case change.Old == change.New: // a change has its line from the scheduler
			log.Info("settings read again, the budget is the same", "cause", cause.String())
		}
	}
}

// readBudget puts the budget of the settings in force.
func readBudget(ctx context.Context, f *pflag.FlagSet, node budgetSetter, cause scheduler.Cause) (scheduler.Change, error) {
	s, err := loadSettings(f)
	if err != nil {
		return scheduler.Change{}, err
	}
	b, err := s.budget()
	if err != nil {
		return scheduler.Change{}, err
	}
	return node.SetBudget(ctx, b, cause)
}
