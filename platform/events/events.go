// Package events is what happens to an account, and the interface of whoever tells its
// receivers.
package events

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Event is one thing that happened to an account: what the webhook service
// delivers (contract 7.7) and what the account's event list shows.
type Event struct {
	ID          string         // evt_…; empty: the emitter assigns one
	Account     string         // acct_…
	Type        string         // stream.started, schedule.failed, …
	StreamID    string         // empty where the event has none
	RecordingID string         // empty where the event has none
	ErrorCode   string         // decision code of a failure, else empty
	Time        time.Time      // zero: now
	Data        map[string]any // the payload's data object
}

// Emitter stores an event, and whatever must be delivered because of it, in
// the caller's transaction: either both the caller's change and the event are
// there afterwards, or neither. An event whose ID is already stored is not
// stored again.
type Emitter interface {
	EmitTx(ctx context.Context, tx pgx.Tx, e Event) error
}
