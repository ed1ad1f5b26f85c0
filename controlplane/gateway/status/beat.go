package status

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/platform/storage/postgres"
)

// LiveFor is for how long a process counts as alive after it was last heard of:
// three beats.
const LiveFor = 15 * time.Second

// forgottenAfter is when a process that is gone without a word leaves the list.
const forgottenAfter = time.Hour

// leaveTimeout bounds the last word of a process.
const leaveTimeout = 2 * time.Second

// Beat tells the others that a process runs.
type Beat struct {
	DB postgres.DB
	// Name is unique among processes, also of its kind; Kind is its command.
	Name, Kind, Build string
	// Knows is the number of the last migration that the process knows.
	Knows uint
	Every time.Duration // 0: 5 s
	Log   *slog.Logger  // nil: slog.Default
}

// Run says so until ctx ends, and then that the process goes. What the database
// does not take is said again at the next beat.
func (b Beat) Run(ctx context.Context) {
	log := cmp.Or(b.Log, slog.Default())
	tick := time.NewTicker(cmp.Or(b.Every, 5*time.Second))
	defer tick.Stop()
	failing := false
	for {
		err := b.say(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "others cannot see that this process runs", "cause", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			b.leave(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
	}
}

func (b Beat) say(ctx context.Context) error {
	_, err := b.DB.Exec(ctx, `
		WITH forgotten AS (DELETE FROM processes WHERE last_seen < now() - $4::interval AND name <> $1)
		INSERT INTO processes (name, kind, build, knows) VALUES ($1, $2, $3, $5) ON CONFLICT (name) DO UPDATE SET last_seen = now()`,
		b.Name, b.Kind, b.Build, forgottenAfter, b.Knows)
	return err
}

// leave takes the process off the list. When that fails, it is seen to be gone.
func (b Beat) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	_, _ = b.DB.Exec(ctx, `DELETE FROM processes WHERE name = $1`, b.Name)
}
