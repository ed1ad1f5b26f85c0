package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
)

// MaxBody bounds the body of an event, in bytes.
const MaxBody = 256 << 10

// timeLayout is how times are written: ISO 8601, UTC, milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Timestamp is a time in JSON: ISO 8601 in UTC with milliseconds, null when it
// is zero.
type Timestamp struct{ time.Time }

// Scan reads a column of times; NULL is none.
func (t *Timestamp) Scan(v any) error {
	at, ok := v.(time.Time)
	if !ok && v != nil {
		return fmt.Errorf("%T is not a time", v)
	}
	t.Time = at
	return nil
}

// MarshalJSON writes the time.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(t.UTC().Format(`"` + timeLayout + `"`)), nil
}

// envelope is the JSON that receivers get; the order of its fields is the order
// in the body.
type envelope struct {
	ID          string         `json:"id"`
	Event       string         `json:"event"`
	StreamID    string         `json:"stream_id,omitempty"`
	RecordingID string         `json:"recording_id,omitempty"`
	Timestamp   Timestamp      `json:"timestamp"`
	Data        map[string]any `json:"data"`
}

// Body renders e as receivers get it (contract 7.7). The bytes are made once:
// they are what is signed.
func Body(e events.Event) ([]byte, error) {
	data := e.Data
	if data == nil {
		data = map[string]any{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(envelope{e.ID, e.Type, e.StreamID, e.RecordingID, Timestamp{e.Time}, data}); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(body) > MaxBody {
		return nil, apierror.Errorf(decision.TooLarge, "The event is larger than %d bytes.", MaxBody)
	}
	return body, nil
}
