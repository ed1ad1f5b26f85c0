package schedules

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/paging"
)

// Record is one execution as the API shows it (contract 6.10).
type Record struct {
	ExecutionID  string          `json:"executionId"`
	ScheduleID   string          `json:"scheduleId"`
	ScheduledFor *time.Time      `json:"scheduledFor"` // null: triggered by hand
	ExecutedAt   time.Time       `json:"executedAt"`
	Status       string          `json:"status"`
	Duration     int64           `json:"duration"` // milliseconds, waits between attempts included
	Attempts     int             `json:"attempts"`
	Result       *Result         `json:"result"`
	Webhook      *map[string]any `json:"webhook"`
	Logs         []string        `json:"logs"`
}

// HistoryFilter narrows a list of executions. Zero members do not, but
// executions that have not ended are listed only when Status asks for them.
type HistoryFilter struct {
	Status string
	From   *time.Time // executed then or later
	To     *time.Time // executed then or earlier
}

// Executions is how the executions of a schedule are listed: latest first.
var Executions = paging.Table[Record]{
	Columns: `id, schedule_id, scheduled_for, executed_at, status, duration_ms, attempts, result, webhook, logs`, From: "schedule_executions",
	Scan: func(row pgx.CollectableRow) (Record, error) {
		r, err := pgx.RowToStructByPos[Record](row)
		r.ExecutedAt, r.ScheduledFor = r.ExecutedAt.UTC(), inUTC(r.ScheduledFor)
		return r, err
	},
	Sorts: []paging.Sort[Record]{paging.Time("executedAt", "executed_at", func(r Record) time.Time { return r.ExecutedAt })},
	ID:    "id", IDOf: func(r Record) string { return r.ExecutionID },
	Camel: true,
}

// HistoryPage returns a page of a schedule's executions. It fails with not_found when the
// account has no such schedule.
func (s *Service) HistoryPage(ctx context.Context, account, id string, f HistoryFilter, p paging.Page) (paging.List[Record], error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return paging.List[Record]{}, err
	}
	return Executions.Read(ctx, s.DB, p, `schedule_id = $1
		AND CASE WHEN $2 = '' THEN status IN ('success', 'failed', 'skipped') ELSE status = $2 END
		AND ($3::timestamptz IS NULL OR executed_at >= $3) AND ($4::timestamptz IS NULL OR executed_at <= $4)`, id, f.Status, f.From, f.To)
}

// inUTC changes the zone of a time that may be missing.
func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}
