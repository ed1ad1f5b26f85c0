package media_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
)

type object = map[string]any

// stream creates one and returns its id.
func (b *bundle) stream(title string) string {
	b.t.Helper()
	return b.do("POST", "/v1/streams", object{"title": title}).want(201).text("id")
}

func (b *bundle) act(id, action string) answer {
	b.t.Helper()
	return b.do("POST", "/internal/v1/streams/"+id+"/actions", object{"action": action})
}

func TestAStreamIsCreatedReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.do("POST", "/v1/streams", object{"title": "Show", "protocol": "webrtc", "recording": object{"enabled": true}}).want(201)
	id := made.text("id")
	if made.header.Get("Location") != "/v1/streams/"+id || made.get("recording.enabled") != true || made.text("status") != "idle" {
		t.Errorf("%s", made.raw)
	}
	if !strings.HasPrefix(made.text("ingest.rtmp.url"), "rtmp://") || !strings.Contains(made.text("ingest.rtmp.stream_key"), "?key=sk_") {
		t.Errorf("%s", made.raw)
	}
	read := b.do("GET", "/v1/streams/"+id, nil).want(200)
	if strings.Contains(string(read.raw), "sk_") || read.text("title") != "Show" {
		t.Errorf("the key is shown again, or another stream: %s", read.raw)
	}
	b.now = b.now.Add(time.Minute)
	changed := b.do("PATCH", "/v1/streams/"+id, object{"title": "Late show", "settings": object{"bitrate": "4.5M", "quality": "720p"}}).want(200)
	if changed.text("title") != "Late show" || changed.text("settings.bitrate") != "4500k" || changed.text("protocol") != "webrtc" ||
		changed.text("updated_at") != "2026-03-01T12:01:00Z" || changed.text("created_at") != "2026-03-01T12:00:00Z" {
		t.Errorf("%s", changed.raw)
	}
	if gone := b.do("DELETE", "/v1/streams/"+id, nil).want(204); len(gone.raw) > 0 {
		t.Errorf("204 with a body: %s", gone.raw)
	}
	b.do("GET", "/v1/streams/"+id, nil).wantError(404, "not_found")
	b.do("DELETE", "/v1/streams/"+id, nil).wantError(404, "not_found")
	if b.eventTypes() != "stream.deleted" {
		t.Error(b.eventTypes())
	}
}

func TestWhatStreamsRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Show")
	b.do("POST", "/v1/streams", `{}`).wantError(400, "invalid_request", "title")
	b.do("POST", "/v1/streams", `{"title":"","protocol":"ndi","settings":{"bitrate":"x"}}`).wantError(400, "invalid_request", "title", "protocol", "settings.bitrate")
	b.do("POST", "/v1/streams", `{"title":7,"colour":1}`).wantError(400, "invalid_request", "title", "colour")
	b.do("POST", "/v1/streams", `[]`).wantError(400, "invalid_request", "body")
	b.do("POST", "/v1/streams", `{"title":"`+strings.Repeat("x", 70<<10)+`"}`).wantError(413, "request_too_large", "body")
	b.do("PATCH", "/v1/streams/"+id, `{"settings":{"bitrate":"7000k"}}`).wantError(400, "STREAM_002", "settings.bitrate")
	b.do("PATCH", "/v1/streams/"+id, `{"settings":{"quality":"potato"}}`).wantError(400, "TRANSCODE_002", "settings.quality")
	b.do("GET", "/v1/streams?limit=101&offset=-1&status=dead", nil).wantError(400, "invalid_request", "limit", "offset", "status")
	b.do("GET", "/v1/streams/strm_x", nil).wantError(404, "not_found")
	b.do("PUT", "/v1/streams/"+id, `{}`).wantError(405, "method_not_allowed")
	b.do("GET", "/v1/nothing", nil).wantError(404, "not_found")
}

func TestNobodySeesTheStreamsOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Mine")
	other := identityheader.Caller{Account: "acct_2", Key: "key_2"}
	for _, r := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/key"}, {"POST", "/actions"}} {
		b.as(other, r[0], "/v1/streams/"+id+r[1], object{}).wantError(404, "not_found")
	}
	if n := b.as(other, "GET", "/v1/streams", nil).want(200).get("pagination.total"); n != 0.0 {
		t.Errorf("another account sees %v streams", n)
	}
	if b.do("GET", "/v1/streams/"+id, nil).want(200).text("title") != "Mine" {
		t.Error("changed by another account")
	}
	b.as(identityheader.Caller{}, "GET", "/v1/streams", nil).wantError(401, "authentication_required")
	b.do("GET", "/v1/streams", nil, identityheader.Header, "acct_1").wantError(401, "authentication_required")
}

func TestAPayingAgentOwnsWhatItMakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	agent := identityheader.Caller{Key: "pay_1"}
	id := b.as(agent, "POST", "/v1/streams", object{"title": "Paid"}).want(201).text("id")
	b.as(agent, "DELETE", "/v1/streams/"+id, nil).want(204)
	if b.eventTypes() != "" {
		t.Errorf("events for an account that is none: %s", b.eventTypes())
	}
}

func TestStreamsAreListedByPageAndByStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for _, title := range []string{"a", "b", "c", "d", "e"} {
		ids = append(ids, b.stream(title))
		b.now = b.now.Add(time.Second)
	}
	b.act(ids[1], "start").want(200)
	path, seen := "/v1/streams?limit=2", ""
	for range 3 {
		page := b.do("GET", path, nil).want(200)
		for _, s := range page.get("data").([]any) {
			seen += s.(object)["title"].(string)
		}
		if page.get("pagination.total") != 5.0 {
			t.Errorf("%s", page.raw)
		}
		if next, ok := page.get("pagination.next_cursor").(string); ok {
			path = "/v1/streams?limit=2&cursor=" + next
		}
	}
	if seen != "edcba" {
		t.Errorf("pages show %s", seen)
	}
	if s := b.do("GET", "/v1/streams?limit=1&offset=3", nil).want(200); s.text("data.0.title") != "b" || s.get("pagination.has_more") != true {
		t.Errorf("%s", s.raw)
	}
	for query, want := range map[string]float64{"live": 1, "idle": 4, "live,idle": 5, "paused,ended": 0} {
		if n := b.do("GET", "/v1/streams?status="+query, nil).want(200).get("pagination.total"); n != want {
			t.Errorf("%s: %v, want %v", query, n, want)
		}
	}
}

func TestAChangeCanBeTiedToTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/streams/" + b.stream("Show")
	tag := b.do("GET", path, nil).want(200).header.Get("ETag")
	next := b.do("PATCH", path, object{"title": "A"}, "If-Match", tag).want(200).header.Get("ETag")
	b.do("PATCH", path, object{"title": "B"}, "If-Match", tag).wantError(412, "precondition_failed")
	b.do("DELETE", path, nil, "If-Match", tag).wantError(412, "precondition_failed")
	b.do("PATCH", path, object{"title": "C"}, "If-Match", `"0", `+next).want(200)
	b.do("DELETE", path, nil, "If-Match", "*").want(204)
}

func TestAStreamKeyIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	again := b.do("POST", "/v1/streams/"+made.text("id")+"/key", nil).want(200)
	if again.text("ingest.webrtc.stream_key") == made.text("ingest.webrtc.stream_key") {
		t.Error("the same key again")
	}
	if !strings.HasSuffix(again.text("ingest.webrtc.stream_key"), again.text("ingest.stream_key_hint")) {
		t.Errorf("%s", again.raw)
	}
}

func TestASessionFromStartToStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Show")
	b.act(id, "pause").wantError(409, "conflict")
	if out := b.act(id, "stop").want(200); out.get("changed") != false {
		t.Errorf("%s", out.raw)
	}
	steps := []struct {
		action, past, status string
		changed              bool
	}{
		{"start", "started", "live", true}, {"start", "started", "live", false},
		{"pause", "paused", "paused", true}, {"resume", "resumed", "live", true},
		{"stop", "stopped", "ended", true}, {"stop", "stopped", "ended", false},
		{"start", "started", "live", true},
	}
	for _, s := range steps {
		out := b.act(id, s.action).want(200)
		if out.text("action") != s.past || out.text("status") != s.status || out.get("changed") != s.changed {
			t.Errorf("%+v: %s", s, out.raw)
		}
		b.now = b.now.Add(10 * time.Second)
	}
	tag := b.do("GET", "/v1/streams/"+id, nil).want(200).header.Get("ETag")
	b.act(id, "start").want(200)
	if again := b.do("GET", "/v1/streams/"+id, nil).want(200).header.Get("ETag"); again != tag {
		t.Errorf("a command without effect makes a new version: %s, %s", tag, again)
	}
	b.do("PATCH", "/v1/streams/"+id, object{"protocol": "srt"}).wantError(409, "conflict")
	b.do("DELETE", "/v1/streams/"+id, nil).want(204)
	if b.eventTypes() != "stream.started stream.ended stream.started stream.ended stream.deleted" {
		t.Fatal(b.eventTypes())
	}
	started, ended := b.events()[0], b.events()[1]
	if started.StreamID != id || started.Account != "acct_1" || started.Data["title"] != "Show" || started.Data["ingest_endpoint"] != "rtmp://127.0.0.1:1935/live" {
		t.Errorf("%+v", started)
	}
	if ended.Data["duration"] != 40.0 || ended.Data["peak_viewers"] != 0.0 {
		t.Errorf("%+v", ended)
	}
}

func TestACommandCarriesSettingsAndIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/streams/" + b.stream("Show")
	b.do("POST", path+"/actions", `{"action":"explode","settings":{"bitrate":"x"}}`).wantError(400, "invalid_request", "action", "settings.bitrate")
	b.do("POST", path+"/actions", `{"action":"start","settings":{"bitrate":"6001"}}`).wantError(400, "STREAM_002", "settings.bitrate")
	b.do("POST", path+"/actions", object{"action": "start", "settings": object{"quality": "1080p", "bitrate": "5000"}}).want(200)
	if s := b.do("GET", path, nil).want(200); s.text("settings.quality") != "1080p" || s.text("settings.bitrate") != "5000k" || s.text("status") != "live" {
		t.Errorf("%s", s.raw)
	}
}

func TestThePlanBoundsStreamsOnAirAlsoWhenManyStartAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := []string{b.stream("a"), b.stream("b"), b.stream("c"), b.stream("d")}
	statuses := make(chan int)
	for _, id := range ids {
		go func() { statuses <- b.act(id, "start").status }()
	}
	count := map[int]int{}
	for range ids {
		count[<-statuses]++
	}
	if count[200] != 2 || count[http.StatusTooManyRequests] != 2 || b.eventTypes() != "stream.started stream.started" {
		t.Fatalf("%v, events %s", count, b.eventTypes())
	}
	for _, id := range ids {
		b.act(id, "stop").want(200)
	}
	b.act(ids[3], "start").want(200)
}

func TestHealthNeedsNoIdentity(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do("GET", "/health", nil, identityheader.Header, "none").want(200)
	b.pool.Close()
	b.do("GET", "/health", nil).wantError(503, "service_unavailable")
}

func TestACreationThatIsRepeatedHappensOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	create := func(title string) answer {
		return b.do("POST", "/v1/streams", object{"title": title}, "Idempotency-Key", "k1")
	}
	first, again := create("Show").want(201), create("Show").want(201)
	if string(first.raw) != string(again.raw) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s\n%s", first.raw, again.raw)
	}
	create("Another").wantError(422, "idempotency_key_reused", "Idempotency-Key")
	if n := b.do("GET", "/v1/streams", nil).want(200).get("pagination.total"); n != 1.0 {
		t.Errorf("%v streams", n)
	}
	id := first.text("id")
	for range 2 {
		b.do("POST", "/v1/streams/"+id+"/actions", object{"action": "pause"}, "Idempotency-Key", "k2").wantError(409, "conflict")
	}
	b.do("POST", "/v1/streams/"+id+"/tokens", nil, "Idempotency-Key", "k3").want(201)
	b.do("POST", "/v1/streams/"+id+"/actions", object{"action": "start"}, "Idempotency-Key", "k4").want(200)
	b.do("POST", "/v1/streams/"+id+"/actions", object{"action": "start"}, "Idempotency-Key", "k4").want(200)
	if b.eventTypes() != "stream.started" {
		t.Error(b.eventTypes())
	}
}
