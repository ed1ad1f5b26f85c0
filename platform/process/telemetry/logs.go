package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// LogConfig says how a process logs. The zero value logs readable lines from
// level Info on.
type LogConfig struct {
	// Process names what runs, in every line; empty: nothing.
	Process string
	// JSON writes an object a line.
	JSON  bool
	Level slog.Level
}

// ParseLog reads a format, text or json, and a level, debug, info, warn or
// error, as an operator writes them.
func ParseLog(format, level string) (c LogConfig, err error) {
	if !slices.Contains([]string{"text", "json"}, format) {
		return c, fmt.Errorf("log format is %q: expected text or json", format)
	}
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	l, ok := levels[level]
	if !ok {
		return c, fmt.Errorf("log level is %q: expected debug, info, warn or error", level)
	}
	return LogConfig{JSON: format == "json", Level: l}, nil
}

// NewLogger returns a logger that writes to w. Lines that are logged with a
// context name the request or the job that it belongs to, and its trace.
func NewLogger(w io.Writer, c LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	var h slog.Handler = slog.NewTextHandler(w, options)
	if c.JSON {
		h = slog.NewJSONHandler(w, options)
	}
	log := slog.New(contextual{h})
	if c.Process != "" {
		log = log.With("process", c.Process)
	}
	return log
}

type attrsKey struct{}

// WithLog has every line that is logged with the result name attrs.
func WithLog(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, attrsKey{}, append(slices.Clip(logged(ctx)), attrs...))
}

func logged(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}

// contextual adds to each record what its context knows.
type contextual struct{ slog.Handler }

// Handle implements slog.Handler. What the record names itself stays as it is.
func (h contextual) Handle(ctx context.Context, r slog.Record) error {
	for _, a := range logged(ctx) {
		if !names(r, a.Key) {
			r.AddAttrs(a)
		}
	}
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func names(r slog.Record, key string) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		found = a.Key == key
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h contextual) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextual{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h contextual) WithGroup(name string) slog.Handler { return contextual{h.Handler.WithGroup(name)} }

// maxLogLine bounds a line of another program, in bytes; what is longer is cut in two.
const maxLogLine = 16 << 10

// lines logs what another program writes.
type lines struct {
	log *slog.Logger

	mu   sync.Mutex
	rest []byte
}

// Lines returns a writer that logs each line written to it as a message.
func Lines(log *slog.Logger) io.Writer { return &lines{log: log} }

// Write implements io.Writer; it never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found && len(line) < maxLogLine {
			return len(p), nil
		}
		if !found {
			line, rest = l.rest[:maxLogLine], l.rest[maxLogLine:]
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.log.Info(string(line))
		}
		l.rest = append(l.rest[:0], rest...)
	}
}
