package catalogue

import "encoding/json"

// The envelope is the same for all types (contract 7.7). The event's id in it is
// what receivers deduplicate by.

type object = map[string]any

// schema is the JSON Schema of a whole body of the type. It lets fields be added
// later: receivers that validate must not break by that.
func (r raw) schema() json.RawMessage {
	properties := object{
		"id":        object{"type": "string", "description": "Id of the event: the same on each attempt."},
		"event":     object{"const": r.Name},
		"timestamp": object{"type": "string", "format": "date-time", "description": "When it happened, UTC."},
		"data":      r.Data,
	}
	required := []string{"id", "event", "timestamp", "data"}
	if r.HasStream {
		properties["stream_id"] = object{"type": "string"}
	}
	if r.HasRecording {
		properties["recording_id"] = object{"type": "string"}
	}
	return mustJSON(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": r.Name, "description": r.Description,
		"type": "object", "properties": properties, "required": required,
	})
}

// example is a whole body of the type.
func (r raw) example() json.RawMessage {
	body := object{"id": "evt_01", "event": r.Name, "timestamp": "2026-03-01T12:00:00Z", "data": r.Example}
	if r.HasStream {
		body["stream_id"] = "strm_01"
	}
	if r.HasRecording {
		body["recording_id"] = "rec_01"
	}
	return mustJSON(body)
}

// mustJSON encodes what is known to be encodable.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
