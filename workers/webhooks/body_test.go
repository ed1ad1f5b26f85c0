package webhooks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
)

var noon = time.Date(2026, 3, 1, 13, 0, 0, 123_456_789, time.FixedZone("CET", 3600))

func TestBodies(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]events.Event{
		`{"id":"e","event":"vod.ready","timestamp":"2026-03-01T12:00:00.123Z","data":{}}`: {ID: "e", Type: "vod.ready", Time: noon},
		`{"id":"e","event":"stream.started","stream_id":"s","timestamp":"2026-03-01T12:00:00.123Z","data":{"title":"<a> & b"}}`: {
			ID: "e", Type: "stream.started", StreamID: "s", Time: noon, Data: map[string]any{"title": "<a> & b"}},
		`{"id":"e","event":"recording.ready","stream_id":"s","recording_id":"r","timestamp":"2026-03-01T12:00:00.123Z","data":{"duration":5}}`: {
			ID: "e", Type: "recording.ready", StreamID: "s", RecordingID: "r", Time: noon, Data: map[string]any{"duration": 5}},
	} {
		if got, err := Body(e); err != nil || string(got) != want {
			t.Errorf("\n got %s\nwant %s\n%v", got, want, err)
		}
	}
}

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	_, err := Body(events.Event{Data: map[string]any{"x": strings.Repeat("x", MaxBody)}})
	if apierror.Code(err) != decision.TooLarge {
		t.Errorf("%v", err)
	}
	if _, err := Body(events.Event{Data: map[string]any{"x": func() {}}}); err == nil {
		t.Error("what is not JSON is encoded")
	}
}

func TestTimestampOfNothingIsNull(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(struct{ A, B Timestamp }{B: Timestamp{noon}})
	if want := `{"A":null,"B":"2026-03-01T12:00:00.123Z"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzBody(f *testing.F) {
	f.Add("evt_1", "stream.started", "strm_1", "title", "\u2028<script>")
	f.Add("\xff", "", "", "", "\x00")
	f.Fuzz(func(t *testing.T, id, kind, stream, key, value string) {
		b, err := Body(events.Event{ID: id, Type: kind, StreamID: stream, Time: noon, Data: map[string]any{key: value}})
		if err == nil && !json.Valid(b) {
			t.Errorf("%q is not JSON", b)
		}
	})
}
