package xds

import (
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Loader publishes each new version of the configuration as soon as it is in
// the database, whichever replica put it there.
type Loader struct {
	Pool   postgres.DB
	Heard  <-chan struct{} // has a value when something was announced on config.Channel: see listen.Listener
	Memory *config.Memory  // of the versions that this process stores; nil: none
	Server *Server
	// Profile says what the default configuration is: see config.DefaultOf. "":
	// platform.
	Profile string
	// Every is how often it looks even when nothing was announced; 0: 30 s.
	Every time.Duration
	Log   *slog.Logger // nil: slog.Default
}

// Run publishes until ctx ends. While the database is away, what was published
// last stays in force.
func (l Loader) Run(ctx context.Context) {
	if l.Every == 0 {
		l.Every = 30 * time.Second
	}
	for ctx.Err() == nil {
		wait := l.Every
		if err := l.Load(ctx); err != nil {
			wait = min(wait, loadAgain)
			l.log().Error("publish the newest configuration", "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-l.Heard:
		case <-time.After(wait):
		}
	}
}

// loadAgain is the pause after the database failed.
const loadAgain = time.Second

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
