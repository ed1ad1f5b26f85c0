package webhooks

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/controlplane/webhooks/catalogue"
	"sluice.dev/sluice/filters/decision"
)

// EventItem is an event as the account's list shows it (spec, "Events API").
type EventItem struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	ErrorCode   *string   `json:"error_code"`
	StreamID    *string   `json:"stream_id,omitempty"`
	RecordingID *string   `json:"recording_id,omitempty"`
	CreatedAt   Timestamp `json:"created_at"`
}

// EventFilter chooses events; zero fields choose all.
type EventFilter struct {
	// Type is a name, a wildcard such as stream.*, or "error": everything that
	// has an error code, and every type whose last word is error.
	Type   string
	Limit  int // 0: 50
	Offset int
}

// ListEvents returns a page of account's events, newest first, and whether
// there are more.
func ListEvents(ctx context.Context, db postgres.DB, account string, f EventFilter) (items []EventItem, more bool, err error) {
	if f.Limit == 0 {
		f.Limit = 50
	}
	prefix, wild := strings.CutSuffix(f.Type, "*")
	rows, _ := db.Query(ctx, `
		SELECT id, type, error_code, stream_id, recording_id, created_at FROM account_events
		WHERE account_id = $1 AND CASE
			WHEN $2 = '' THEN true
			WHEN $2 = 'error' THEN error_code IS NOT NULL OR type LIKE '%.error'
			WHEN $3 THEN starts_with(type, $4)
			ELSE type = $2 END
		ORDER BY seq DESC LIMIT $5 OFFSET $6`, account, f.Type, wild, prefix, f.Limit+1, f.Offset)
	items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e EventItem, err error) {
		err = row.Scan(&e.ID, &e.Type, &e.ErrorCode, &e.StreamID, &e.RecordingID, &e.CreatedAt.Time)
		return e, err
	})
	if err != nil {
		return nil, false, storeError(err, "list events")
	}
	return items[:min(len(items), f.Limit)], len(items) > f.Limit, nil
}

// Published is the answer to a product that published an event.
type Published struct {
	ID         string `json:"id"`
	Duplicate  bool   `json:"duplicate"` // the id was known: nothing was stored
	Deliveries int    `json:"deliveries"`
}

// Publish stores an event that a product sent, with its deliveries, in one
// transaction. It fails with invalid_request, naming every bad field, unless
// the type is in the catalogue and the data fits its schema.
func (s *Service) Publish(ctx context.Context, e controlplane.Event) (Published, error) {
	if err := controlplane.Invalid(checkEvent(e)); err != nil {
		return Published{}, err
	}
	e = s.complete(e)
	var out emitted
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		out, err = s.emit(ctx, tx, e)
		return err
	})
	return Published{e.ID, !out.Stored, out.Deliveries}, storeError(err, "publish")
}

func checkEvent(e controlplane.Event) []decision.Detail {
	var c checker
	t, known := catalogue.Lookup(e.Type)
	if !known || e.Type == catalogue.Test {
		c.bad("event", "is not an event that can be published", "a name from GET /v1/webhooks/event-types")
	} else {
		c.details = t.Check(e.Data)
	}
	for field, id := range map[string]string{"id": e.ID, "stream_id": e.StreamID, "recording_id": e.RecordingID} {
		if len(id) > 100 || !plain(id) {
			c.bad(field, "is too long or has characters that are not allowed", fmt.Sprintf("at most %d bytes", 100))
		}
	}
	return c.details
}
