package webhooks

import (
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
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
		return &apierror.Error{Code: decision.AuthRequired}
	}
	var in publishRequest
	if err := httpapi.Decode(w, r, 2*MaxBody, &in); err != nil {
		return err
	}
	out, err := h.Publish(r.Context(), events.Event{
		ID: in.ID, Account: c.Account, Type: in.Event, StreamID: in.StreamID, RecordingID: in.RecordingID,
		ErrorCode: errorCode(in.Data), Time: in.Timestamp, Data: in.Data,
	})
	status := http.StatusCreated
	if out.Duplicate {
		status = http.StatusOK
	}
	return httpapi.Result(w, status, out, err)
}

// errorCode is that of the payload, which the account's event list shows too.
func errorCode(data map[string]any) string {
	code, _ := data["error_code"].(string)
	return code
}
