package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// Published is the answer to a product that published an event.
type Published struct {
	ID         string `json:"id"`
	Duplicate  bool   `json:"duplicate"` // the id was known: nothing was stored
	Deliveries int    `json:"deliveries"`
}

// Publish stores an event that a product sent, with its deliveries, in one
// transaction. It fails with invalid_request, naming every bad field, unless
// the type is in the catalogue and the data fits its schema.
func (s *Service) Publish(ctx context.Context, e events.Event) (Published, error) {
	if err := apierror.Invalid(checkEvent(e)); err != nil {
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

// checkEvent names everything that is wrong with an event that a product sent:
// its type, its ids and each field of its data.
func checkEvent(e events.Event) []decision.Detail {
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
