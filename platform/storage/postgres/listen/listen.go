// Package listen hears what is announced in the database (LISTEN), on one connection
// for a whole process: PostgreSQL gives every listener a process of its own, and a
// pooler such as PgBouncer must not stand between.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/process/pause"
)

const (
	// idleCheck is how often a silent connection is asked whether it still lives.
	idleCheck = 10 * time.Second
	// reconnectAfter is the pause after a connection that failed.
	reconnectAfter = 200 * time.Millisecond
)

// Listener passes announcements on. Make it by New, ask for channels, then Run it.
type Listener struct {
	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	heard   map[string][]chan struct{} // by channel
}

// New returns a listener on a connection that connect makes, anew after each that
// failed. log nil: slog.Default.
func New(connect func(context.Context) (*pgx.Conn, error), log *slog.Logger) *Listener {
	if log == nil {
		log = slog.Default()
	}
	return &Listener{connect: connect, log: log, heard: map[string][]chan struct{}{}}
}

// On returns what has a value when something was announced on a channel since it was
// last received from, or may have been while nobody listened: so once after each
// connection. Announcements that come meanwhile are one. It must not be called once
// Run is.
func (l *Listener) On(channel string) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.heard[channel] = append(l.heard[channel], c)
	return c
}

// Run listens until ctx ends, and connects again when the connection fails.
func (l *Listener) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		l.log.WarnContext(ctx, "the connection for announcements failed", "cause", err)
		pause.For(ctx, reconnectAfter)
	}
}

// listen passes announcements on until the connection fails or ctx ends.
func (l *Listener) listen(ctx context.Context) error {
	conn, err := l.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	channels := slices.Sorted(maps.Keys(l.heard))
	if _, err := conn.Exec(ctx, "LISTEN "+strings.Join(channels, "; LISTEN ")); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for _, channel := range channels { // for what was announced while nobody listened
		l.pass(channel)
	}
	for {
		if err := l.waitOnce(ctx, conn); err != nil {
			return err
		}
	}
}

// pass tells everybody who has asked for a channel.
func (l *Listener) pass(channel string) {
	for _, c := range l.heard[channel] {
		select {
		case c <- struct{}{}:
		default: // it has a value already
		}
	}
}

// waitOnce waits for one announcement, or checks the connection after a while without
// any.
func (l *Listener) waitOnce(ctx context.Context, conn *pgx.Conn) error {
	wait, cancel := context.WithTimeout(ctx, idleCheck)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	switch {
	case err == nil:
		l.pass(n.Channel)
		return nil
	case ctx.Err() != nil || wait.Err() == nil:
		return err
	}
	return check(ctx, conn)
}

// errReadOnly is the error of a connection to a server on which nothing can be
// announced any more.
var errReadOnly = errors.New("the server takes no writes: another is the primary")

// check asks whether the connection lives, and leads where announcements are made.
func check(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, idleCheck)
	defer cancel()
	var readOnly string
	if err := conn.QueryRow(ctx, `SHOW transaction_read_only`).Scan(&readOnly); err != nil {
		return err
	}
	if readOnly == "on" {
		return errReadOnly
	}
	return nil
}
