package jobs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"sluice.dev/sluice/platform/storage/postgres"
)

// How often River itself looks into a queue, as a net under DueJobs: where it listens for
// nothing, as for a while after the database was restarted. Each look is a statement of its
// own for each queue, which locks and updates.
const (
	pollSoon  = time.Second     // queues with jobs that somebody waits for
	pollEvery = 5 * time.Second // the others
)

// DueJobs has River fetch the jobs that nobody told it of: those that were put off until
// now, and those that were committed after a fetch that another job's notification had
// caused, as River tells of one job of a queue in a few milliseconds. One statement that
// only reads asks about all queues.
//
// Nothing depends on a single notification: as long as a due job is not taken, each look
// tells of it again, and River polls.
type DueJobs struct {
	DB     postgres.DB
	Queues map[string]river.QueueConfig // those of the process's client
	// Every is the pause between two looks, and so the greatest delay of such a job;
	// 0: 50 ms.
	Every time.Duration
	Log   *slog.Logger // nil: slog.Default
}

// tellSQL sends the notification that River's client listens for, of each queue with a
// job whose time has come. Of each queue and priority it reads one entry of the index by
// which jobs are fetched, however many jobs there are.
const tellSQL = `
SELECT pg_notify(concat(current_schema(), '.river_insert'), json_build_object('queue', q.name)::text)
FROM unnest($1::text[]) AS q (name) WHERE EXISTS (
	SELECT FROM generate_series(1, 4) AS p (priority), LATERAL (
		SELECT FROM river_job WHERE state = 'available' AND queue = q.name AND priority = p.priority AND scheduled_at <= now() LIMIT 1) AS due)`

// Run looks until ctx ends.
func (d DueJobs) Run(ctx context.Context) {
	queues := slices.Sorted(maps.Keys(d.Queues))
	pause := time.NewTicker(cmp.Or(d.Every, 50*time.Millisecond))
	defer pause.Stop()
	log := cmp.Or(d.Log, slog.Default())
	for failing := false; ; {
		err := d.tell(ctx, queues)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("jobs that are due are late", "cause", err)
		case err == nil && failing:
			log.Info("jobs that are due are found again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// tell tells of the jobs of these queues that are due.
func (d DueJobs) tell(ctx context.Context, queues []string) error {
	if _, err := d.DB.Exec(ctx, tellSQL, queues); err != nil {
		return fmt.Errorf("look for due jobs of %d queues: %w", len(queues), err)
	}
	return nil
}

// Unpolled returns the queues with as few polls as the net under DueJobs needs, where they
// do not say how many. Whoever works them without DueJobs must not use it.
func Unpolled(queues map[string]river.QueueConfig) map[string]river.QueueConfig {
	all := maps.Clone(queues)
	for name, q := range all {
		q.FetchPollInterval = cmp.Or(q.FetchPollInterval, pollEvery)
		all[name] = q
	}
	return all
}
