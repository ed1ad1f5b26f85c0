package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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
}

// EventFilter narrows a list of account events.
type EventFilter struct {
	Errors bool      // only those that carry an error code
	Types  []string  // only these types, or groups of them written as a prefix with %; empty: all
	Since  time.Time // only those that happened then or later; zero: all
}

// AccountEvents returns the latest events of an account, newest first, and
// whether there are more than the limit.
func (s *Service) AccountEvents(ctx context.Context, account string, f EventFilter, limit int) ([]AccountEvent, bool, error) {
	rows, _ := s.DB.Query(ctx, `
		SELECT id, type, error_code, stream_id, recording_id, occurred_at, convert_from(body, 'UTF8')::json -> 'data'
		FROM account_events
		WHERE account_id = $1 AND (NOT $2 OR error_code IS NOT NULL) AND (cardinality($3::text[]) = 0 OR type LIKE ANY ($3))
			AND occurred_at >= $4
		ORDER BY seq DESC LIMIT $5`, account, f.Errors, nonNil(f.Types), f.Since, limit+1)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[AccountEvent])
	if err != nil {
		return nil, false, fmt.Errorf("list events: %w", err)
	}
	for i := range list {
		list[i].CreatedAt = list[i].CreatedAt.UTC()
	}
	if len(list) > limit {
		return list[:limit], true, nil
	}
	return list, false, nil
}

// nonNil returns an empty list for a nil one, which the database would take as
// NULL.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
