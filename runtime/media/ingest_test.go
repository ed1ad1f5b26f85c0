package media_test

import (
	"strings"
	"testing"
)

func TestAnIngestIsAStreamFromThePublishersSide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.do("POST", "/v1/ingest", object{"title": "Cam", "protocol": "srt", "playback_policy": "signed"}).want(201)
	id, stream := made.text("id"), made.text("stream_id")
	if !strings.Contains(made.text("ingest.srt.stream_key"), ":key:sk_") || strings.TrimPrefix(id, "ing_") != strings.TrimPrefix(stream, "strm_") {
		t.Errorf("%s", made.raw)
	}
	b.act(stream, "start").want(200)
	read := b.do("GET", "/v1/ingest/"+id, nil).want(200)
	if read.text("status") != "live" || strings.Contains(string(read.raw), "sk_") {
		t.Errorf("%s", read.raw)
	}
	outputs := b.do("GET", "/v1/ingest/"+id+"/outputs", nil).want(200)
	if outputs.text("data.0.protocol") != "hls" || outputs.text("data.0.status") != "active" || outputs.get("data.1.token_required") != true {
		t.Errorf("%s", outputs.raw)
	}
	if again := b.do("POST", "/v1/ingest", object{"stream_id": stream}).want(201); again.text("id") != id {
		t.Errorf("%s", again.raw)
	}
}

func TestIngestsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := b.stream("Mine")
	b.do("POST", "/v1/ingest", object{}).wantError(400, "invalid_request", "title")
	b.do("POST", "/v1/ingest", object{"stream_id": stream, "title": "x"}).wantError(400, "invalid_request", "stream_id")
	b.do("POST", "/v1/ingest", object{"stream_id": "strm_x"}).wantError(400, "invalid_request", "stream_id")
	b.as(otherAccount, "POST", "/v1/ingest", object{"stream_id": stream}).wantError(400, "invalid_request", "stream_id")
	b.as(otherAccount, "GET", "/v1/ingest/ing"+strings.TrimPrefix(stream, "strm"), nil).wantError(404, "not_found")
	b.do("GET", "/v1/ingest/"+stream+"/outputs", nil).wantError(404, "not_found")
}
