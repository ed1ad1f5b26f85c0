package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/webhooks"
)

// quiet is the log of what tests start.
var quiet = slog.New(slog.DiscardHandler)

// processes are what this test binary can be instead of a run of the tests: a
// worker over the database that the variable holds, until it is killed.
var processes = map[string]func(context.Context, *pgxpool.Pool) error{
	scheduleProcessEnv: startScheduleWorker,
	processEnv:         startImpatientWorker,
}

func init() {
	for variable, start := range processes {
		url := os.Getenv(variable)
		if url == "" {
			continue
		}
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, url)
		if err == nil {
			err = start(ctx, pool)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
}

// parts are what every worker under test works with.
type parts struct {
	jobs   *river.Client[pgx.Tx] // enqueues only
	client *outbound.Client      // may call this machine
	events *webhooks.Service
	box    *secretbox.Box
}

func newParts(pool *pgxpool.Pool) (parts, error) {
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	if err != nil {
		return parts{}, err
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		return parts{}, err
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return parts{jobs, client, webhooks.New(webhooks.Config{DB: pool, Jobs: jobs, Box: box, Client: client, Log: quiet}), box}, nil
}
