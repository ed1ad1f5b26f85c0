package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// TriggerPrefix begins the ids of events that were tried, by which receivers can tell
// them.
const TriggerPrefix = "evt_trigger_"

// Trigger is an event that a customer wants to see, though nothing has happened.
type Trigger struct {
	Event string `json:"event"`
	// Data goes over that of the catalogue's example, field by field. Its stream_id and
	// recording_id say whose event it is.
	Data map[string]any `json:"data"`
}

// Triggered is the event that was stored.
type Triggered struct {
	ID         string `json:"id"`
	Event      string `json:"event"`
	Deliveries int    `json:"deliveries"` // to subscriptions
}

// Trigger stores an event like the catalogue's example of it, and delivers it to the
// subscriptions of the account and whoever listens, as if it had happened; the audit log
// says that it was tried. It fails with invalid_request, naming every bad field.
func (s *Service) Trigger(ctx context.Context, account string, in Trigger) (out Triggered, err error) {
	var c checker
	i := slices.IndexFunc(s.Types(), func(t catalogue.Type) bool { return t.Name == in.Event })
	if i < 0 || in.Event == catalogue.Test {
		c.bad("event", "is not a known event", "a name from GET /v1/webhooks/event-types")
		return out, apierror.Invalid(c.details)
	}
	var example struct {
		StreamID    string         `json:"stream_id"`
		RecordingID string         `json:"recording_id"`
		Data        map[string]any `json:"data"`
	}
	if err := json.Unmarshal(s.Types()[i].Example, &example); err != nil {
		return out, fmt.Errorf("example of %s: %w", in.Event, err)
	}
	if example.Data == nil {
		example.Data = map[string]any{}
	}
	own := maps.Clone(in.Data)
	for name, id := range map[string]*string{"stream_id": &example.StreamID, "recording_id": &example.RecordingID} {
		given, ok := own[name].(string)
		if !ok {
			continue
		}
		*id = given
		if _, both := example.Data[name]; !both {
			delete(own, name)
		}
	}
	maps.Copy(example.Data, own)
	e := s.complete(events.Event{ID: ids.New(TriggerPrefix, s.Now()), Account: account, Type: in.Event, StreamID: example.StreamID, RecordingID: example.RecordingID, Data: example.Data})
	e.ErrorCode = errorCode(e.Data)
	if err := apierror.Invalid(checkEvent(e)); err != nil {
		return out, err
	}
	var came emitted
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		if came, err = s.emit(ctx, tx, e); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.trigger", Target: e.ID, After: map[string]any{"event": e.Type, "deliveries": came.Deliveries}})
	})
	return Triggered{e.ID, e.Type, came.Deliveries}, storeError(err, "trigger")
}
