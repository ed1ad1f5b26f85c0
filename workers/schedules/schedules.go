// Package schedules keeps the schedules of the Events API, turns their due runs
// into executions, and records what came of each. When a run is
// due is decided by its sub-package plan, what a schedule may say by
// definition, and what an execution does by run, which the workers drive.
//
// A run is made in one transaction: the execution row, its job in the queue and
// the schedule's next time commit together, by whichever worker claims the
// schedule first. From then on the execution ends in exactly one record,
// whatever crashes: a worker holds it by a lease, and an execution whose lease
// has lapsed is given a new job. What an execution does to the world is done at
// least once; its id goes along, so that receivers can tell a repetition.
package schedules

import (
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/limits/coalesce"
	"sluice.dev/sluice/platform/limits/refusals"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Config says what a Service works with.
type Config struct {
	DB     postgres.DB    // required
	Jobs   Jobs           // required: a River client, which need not be started
	Events events.Emitter // required: executions appear among the account's events
	// Box seals the headers of webhooks; nil: they are stored as they are, and those
	// that are sealed cannot be opened.
	Box *secretbox.Box
	// CheckURL reports whether a webhook's address may be called:
	// (*outbound.Client).CheckURL. Required for handlers.
	CheckURL func(ctx context.Context, url string) error
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Retention is how long executions are kept; 0: 30 days.
	Retention time.Duration
	// Batch is how many due schedules one claim takes; 0: 500.
	Batch int
	// MaxTriggered is how many runs of one account that were triggered by hand may
	// be pending, to within what is triggered at the same moment; one schedule may
	// have a fifth of them. 0: 100.
	MaxTriggered int
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Service is the scheduling service.
type Service struct {
	Config
	begins    coalesce.Group[string, begun]
	finishes  coalesce.Group[finish, bool]
	postpones coalesce.Group[postponed, struct{}]
	refused   refusals.Memory // of triggers, by account and schedule
}

// New returns a service; it starts nothing.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Retention == 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	if c.Batch == 0 {
		c.Batch = 500
	}
	if c.MaxTriggered == 0 {
		c.MaxTriggered = 100
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Service{Config: c}
	s.begins.Do, s.finishes.Do, s.postpones.Do = s.beginAll, s.finishAll, s.postponeAll
	// The end of a run is an event for each subscription of its account.
	s.finishes.Account = func(f finish) string { return f.attempt.Account }
	return s
}

// now is the clock in the database's precision, so that what is stored equals
// what was compared.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Microsecond) }
