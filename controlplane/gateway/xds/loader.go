package xds

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// Loader publishes each new version of the configuration as soon as it is in
// the database, whichever replica put it there.
type Loader struct {
	Pool   *pgxpool.Pool
	Memory *config.Memory // of the versions that this process stores; nil: none
	Server *Server
	// Profile says what the default configuration is: see config.DefaultOf. "":
	// platform.
	Profile string
	// Every is how often it looks even when nothing was announced; 0: 30 s.
	Every time.Duration
	// Retry is how long it waits after the database failed; 0: 1 s.
	Retry time.Duration
	Log   *slog.Logger // nil: slog.Default
}

// Run publishes until ctx ends. While the database is away, what was published
// last stays in force.
func (l Loader) Run(ctx context.Context) {
	if l.Every == 0 {
		l.Every = 30 * time.Second
	}
	if l.Retry == 0 {
		l.Retry = time.Second
	}
	for ctx.Err() == nil {
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		l.log().Error("listen for configurations", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(l.Retry):
		}
	}
}

// listen publishes what is newest, then what is announced, until the connection
// fails. It subscribes first, so that nothing falls between the two.
func (l Loader) listen(ctx context.Context) error {
	pooled, err := l.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack() // it listens: it must not go back to the pool
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+config.Channel); err != nil {
		return err
	}
	for {
		if err := l.Load(ctx); err != nil {
			l.log().Error("publish the newest configuration", "cause", err)
		}
		if err := l.wait(ctx, conn); err != nil {
			return err
		}
	}
}

// wait returns nil at the next announcement, or after l.Every.
func (l Loader) wait(ctx context.Context, conn *pgx.Conn) error {
	soon, cancel := context.WithTimeout(ctx, l.Every)
	defer cancel()
	_, err := conn.WaitForNotification(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil
	}
	return err
}

// Load publishes the newest version in the database. A process that has not
// published yet first sees to it that there is one: see config.Store.Init.
func (l Loader) Load(ctx context.Context) error {
	store := config.Store{DB: l.Pool, Memory: l.Memory}
	if l.Server.Version() == 0 {
		if err := initialise(ctx, store, l.Profile); err != nil {
			l.log().Warn("the default configuration is not in force", "cause", err)
		}
	}
	v, err := store.Latest(ctx)
	if err != nil {
		return err
	}
	return l.Server.Publish(ctx, v.Number, v.Document)
}

func initialise(ctx context.Context, store config.Store, profile string) error {
	d, err := config.DefaultOf(profile)
	if err != nil {
		return err
	}
	return store.Init(ctx, d)
}

func (l Loader) log() *slog.Logger {
	if l.Log == nil {
		return slog.Default()
	}
	return l.Log
}
