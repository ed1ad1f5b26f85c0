package webhooks

import (
	"net/http"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/identity"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
)

// publishRequest is an event as a product sends it. Products send their own
// id, so that a request that is repeated stores the event once.
type publishRequest struct {
	ID          string         `json:"id"`
	Event       string         `json:"event"`
	StreamID    string         `json:"stream_id"`
	RecordingID string         `json:"recording_id"`
	Timestamp   time.Time      `json:"timestamp"` // absent: now
	Data        map[string]any `json:"data"`
}

// publish answers 201 for a new event and 200 for one that was known.
func (h handlers) publish(w http.ResponseWriter, r *http.Request) error {
	c, _ := identity.From(r.Context())
	if c.Account == "" {
		return &controlplane.Error{Code: decision.AuthRequired}
	}
	var in publishRequest
	if err := respond.Decode(w, r, 2*MaxBody, &in); err != nil {
		return err
	}
	out, err := h.Publish(r.Context(), controlplane.Event{
		ID: in.ID, Account: c.Account, Type: in.Event, StreamID: in.StreamID, RecordingID: in.RecordingID,
		ErrorCode: errorCode(in.Data), Time: in.Timestamp, Data: in.Data,
	})
	status := http.StatusCreated
	if out.Duplicate {
		status = http.StatusOK
	}
	return respond.Result(w, status, out, err)
}

// errorCode is that of the payload, which the account's event list shows too.
func errorCode(data map[string]any) string {
	code, _ := data["error_code"].(string)
	return code
}
