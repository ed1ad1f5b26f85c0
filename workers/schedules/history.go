package schedules

import (
	"context"
	"fmt"
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

// History returns a page of a schedule's executions, latest first, and how many
// there are in all. It fails with not_found when the account has no such
// schedule.
func (s *Service) History(ctx context.Context, account, id string, f HistoryFilter, page paging.Page) ([]Record, int, error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return nil, 0, err
	}
	const where = ` FROM schedule_executions WHERE schedule_id = $1
		AND CASE WHEN $2 = '' THEN status IN ('success', 'failed', 'skipped') ELSE status = $2 END
		AND ($3::timestamptz IS NULL OR executed_at >= $3) AND ($4::timestamptz IS NULL OR executed_at <= $4)`
	var total int
	if err := s.DB.QueryRow(ctx, `SELECT count(*)`+where, id, f.Status, f.From, f.To).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count executions: %w", err)
	}
	rows, _ := s.DB.Query(ctx, `
		SELECT id, schedule_id, scheduled_for, executed_at, status, duration_ms, attempts, result, webhook, logs`+where+`
		ORDER BY executed_at DESC, id DESC LIMIT $5 OFFSET $6`, id, f.Status, f.From, f.To, page.Limit, page.Offset)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Record])
	if err != nil {
		return nil, 0, fmt.Errorf("list executions: %w", err)
	}
	for i := range list {
		list[i].ExecutedAt = list[i].ExecutedAt.UTC()
		list[i].ScheduledFor = inUTC(list[i].ScheduledFor)
	}
	return list, total, nil
}

// inUTC changes the zone of a time that may be missing.
func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}
