package keyfeed

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// idleCheck is how often a silent connection is asked whether it still lives.
const idleCheck = 10 * time.Second

// reconnectAfter is the pause after a connection that failed.
const reconnectAfter = 200 * time.Millisecond

// notifier wakes waiting polls when the feed changes. One connection per process
// listens for all of them.
type notifier struct {
	connect *pgx.ConnConfig
	log     *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	stopped chan struct{} // closed when run returns
}

// newNotifier returns a notifier that will listen on a connection of its own, made as c says.
func newNotifier(c *pgx.ConnConfig, log *slog.Logger) *notifier {
	return &notifier{connect: c, log: log, changed: make(chan struct{}), stopped: make(chan struct{})}
}

// next returns a channel that closes at the next change. Take it before
// reading: a change that comes between both then is not missed.
func (h *notifier) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// wake wakes everyone who waits.
func (h *notifier) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// run listens until ctx ends, and connects again when the connection fails. It
// must be called once.
func (h *notifier) run(ctx context.Context) {
	defer close(h.stopped)
	for ctx.Err() == nil {
		err := h.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		h.log.WarnContext(ctx, "feed: connection for notifications failed", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
}

// listen passes notifications on until the connection fails or ctx ends.
func (h *notifier) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, h.connect)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `LISTEN `+Channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	h.wake() // what changed while nobody listened
	for {
		if err := h.waitOnce(ctx, conn); err != nil {
			return err
		}
	}
}

// waitOnce waits for one notification, or checks the connection after a while
// without any.
func (h *notifier) waitOnce(ctx context.Context, conn *pgx.Conn) error {
	wait, cancel := context.WithTimeout(ctx, idleCheck)
	defer cancel()
	_, err := conn.WaitForNotification(wait)
	switch {
	case err == nil:
		h.wake()
		return nil
	case ctx.Err() != nil || wait.Err() == nil:
		return err
	}
	check, cancel := context.WithTimeout(ctx, idleCheck)
	defer cancel()
	return conn.Ping(check)
}
