package schedules

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/paging"
)

// AccountEvent is one item of an account's event list. Its fields are in
// snake_case, as those of all events.
type AccountEvent struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	ErrorCode   *string         `json:"error_code"`
	StreamID    *string         `json:"stream_id"`
	RecordingID *string         `json:"recording_id"`
	CreatedAt   time.Time       `json:"created_at"`
	Data        json.RawMessage `json:"data"`

	seq int64
}

// EventFilter narrows a list of account events.
type EventFilter struct {
	Errors bool     // only those that carry an error code
	Types  []string // only these types, or groups of them written as a prefix with %; empty: all
}

// Events is how the events of an account are listed: newest first, in the order in which
// they were stored.
var Events = paging.Table[AccountEvent]{
	Columns: `id, type, error_code, stream_id, recording_id, occurred_at, convert_from(body, 'UTF8')::json -> 'data', seq`, From: "account_events",
	Scan: func(row pgx.CollectableRow) (e AccountEvent, err error) {
		err = row.Scan(&e.ID, &e.Type, &e.ErrorCode, &e.StreamID, &e.RecordingID, &e.CreatedAt, &e.Data, &e.seq)
		e.CreatedAt = e.CreatedAt.UTC()
		return e, err
	},
	Sorts:   []paging.Sort[AccountEvent]{paging.Number("created_at", "seq", func(e AccountEvent) int64 { return e.seq })},
	Created: "occurred_at",
	Log:     true,
}

// AccountEvents returns a page of an account's events.
func (s *Service) AccountEvents(ctx context.Context, account string, f EventFilter, p paging.Page) (paging.List[AccountEvent], error) {
	where := `account_id = $1 AND (cardinality($2::text[]) = 0 OR type LIKE ANY ($2))`
	if f.Errors { // which have an index of their own
		where += ` AND error_code IS NOT NULL`
	}
	return Events.Read(ctx, s.DB, p, where, account, nonNil(f.Types))
}

// nonNil returns an empty list for a nil one, which the database would take as
// NULL.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
