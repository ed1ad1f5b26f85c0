package schedules

import (
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/workers/schedules/definition"
)

// The statuses of a schedule.
const (
	Active    = "active"
	Paused    = "paused"
	Completed = "completed" // no run is left
)

// The prefixes of ids.
const (
	schedulePrefix  = "schedule_"
	executionPrefix = "exec_"
)

// Schedule is a stored schedule.
type Schedule struct {
	ID         string
	Account    string
	Definition definition.Definition // a header whose value is sealed has definition.Sealed
	Status     string
	Version    int64
	Next       *time.Time // nil unless active, and of one that waits for its suspended account
	Count      int64      // executions that have ended in success or failure
	Last       *time.Time // executedAt of the latest of them
	LastStatus *string
	CreatedAt  time.Time
	UpdatedAt  time.Time

	sealed []byte // the values of headers; nil: they stand in Definition
}

// scheduleColumns are what scanSchedule reads.
const scheduleColumns = `id, account_id, definition, status, version, next_fire_at, execution_count, last_execution,
	last_execution_status, created_at, updated_at, sealed_headers`

// scanSchedule is a pgx.RowToFunc.
func scanSchedule(row pgx.CollectableRow) (s Schedule, err error) {
	err = row.Scan(&s.ID, &s.Account, &s.Definition, &s.Status, &s.Version, &s.Next, &s.Count, &s.Last, &s.LastStatus,
		&s.CreatedAt, &s.UpdatedAt, &s.sealed)
	return s, err
}
