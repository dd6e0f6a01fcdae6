package telemetry

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// maxComponents bounds the components that Levels remembers, since names may come from an administrator's request. The
// program has about 20.
const maxComponents = 64

// Levels holds the lowest level that is written, per component, switchable at run time. Make one with NewLogger.
type Levels struct {
	base *componentLevel // for loggers without a component; immutable pointer

	mu         sync.Mutex
	components map[string]*componentLevel // guarded by mu
}

// componentLevel is the level in force for one component. Handlers keep a pointer to it, so that a check is one load.
type componentLevel struct {
	level atomic.Int64
	own   bool // set by name, so it does not follow the base level; guarded by Levels.mu
}

func newLevels(base slog.Level) *Levels {
	l := &Levels{base: &componentLevel{}, components: make(map[string]*componentLevel)}
	l.base.level.Store(int64(base))
	return l
}

// SetLevel changes the level of a component ("debug", "info", "warn" or "error"), also of one that has not logged yet.
// The empty component is the base: it applies to every component that has no level of its own.
func (l *Levels) SetLevel(component, level string) error {
	v, err := parseLevel(level)
	if err != nil {
		return err
	}
	if !validComponent(component) {
		return fmt.Errorf("log component %q: want lower-case letters, digits, '_' or '/'", component)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if component == "" {
		l.base.level.Store(int64(v))
		for _, c := range l.components {
			if !c.own {
				c.level.Store(int64(v))
			}
		}
		return nil
	}
	c, ok := l.componentLocked(component)
	if !ok {
		return fmt.Errorf("log component %q: more than %d components", component, maxComponents)
	}
	c.own = true
	c.level.Store(int64(v))
	return nil
}

// Levels returns the level in force by component; the base level stands under the empty name.
func (l *Levels) Levels() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]string, len(l.components)+1)
	out[""] = levelName(slog.Level(l.base.level.Load()))
	for name, c := range l.components {
		out[name] = levelName(slog.Level(c.level.Load()))
	}
	return out
}

// apply sets levels from "info" or "info,p2p=debug,verify=warn".
func (l *Levels) apply(spec string) error {
	for part := range strings.SplitSeq(spec, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		component, level, named := strings.Cut(part, "=")
		if !named {
			component, level = "", part
		} else if component == "" {
			return fmt.Errorf("log level %q: no component before '='", part)
		}
		if err := l.SetLevel(component, level); err != nil {
			return err
		}
	}
	return nil
}

// component returns the level of a component, following the base level until it is set by name.
func (l *Levels) component(name string) *componentLevel {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.componentLocked(name); ok {
		return c
	}
	return l.base
}

func (l *Levels) componentLocked(name string) (*componentLevel, bool) {
	if c, ok := l.components[name]; ok {
		return c, true
	}
	if len(l.components) >= maxComponents {
		return nil, false
	}
	c := &componentLevel{}
	c.level.Store(l.base.level.Load())
	l.components[name] = c
	return c, true
}

func validComponent(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '/' {
			return false
		}
	}
	return len(name) <= 32
}

func parseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q: want debug, info, warn or error", name)
}

// levelName maps a level to the nearest named one at or below it, so that metric labels stay a closed set.
func levelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warn"
	case level >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}
