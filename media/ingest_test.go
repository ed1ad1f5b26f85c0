package media_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identityheader"
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

const offer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\n"

func TestAPublisherComesByWebRTC(t *testing.T) {
	t.Parallel()
	b := setup(t, hlsEngine(t))
	made := b.do("POST", "/v1/streams", object{"title": "Cam", "protocol": "webrtc"}).want(201)
	_, path, _ := strings.Cut(made.text("ingest.webrtc.url"), "/v1/")
	path = "/v1/" + path
	key := made.text("ingest.webrtc.stream_key")
	post := func(path, key, offer string) answer {
		return b.do("POST", path, offer, "Content-Type", "application/sdp", "Authorization", "Bearer "+key, identityheader.Header, "none")
	}
	answer := post(path, key, "offer").want(201)
	_, session, _ := strings.Cut(answer.header.Get("Location"), "/v1/")
	if string(answer.raw) != "answer" || session != strings.TrimPrefix(path, "/v1/")+"/5e55-1" {
		t.Errorf("%s, at %s", answer.raw, session)
	}
	b.do("PATCH", "/v1/"+session, "candidate", identityheader.Header, "none").want(204)
	b.do("DELETE", "/v1/"+session, nil, identityheader.Header, "none").want(200)
	b.do("DELETE", path+"/..%2f..", nil).wantError(404, "not_found")

	post(path, "sk_wrong", "offer").wantError(401, "STREAM_004")
	post("/v1/ingest/ing_"+strings.Repeat("0", 20)+"/whip", key, "offer").wantError(401, "STREAM_004")
	post("/v1/ingest/strm_x/whip", key, "offer").wantError(404, "not_found")
	post(path, key, strings.Replace(offer, "H264", "H263", 1)).wantError(400, "STREAM_005")
	rtmp := b.do("POST", "/v1/streams", object{"title": "Cam"}).want(201)
	post("/v1/ingest/ing"+strings.TrimPrefix(rtmp.text("id"), "strm")+"/whip", rtmp.text("ingest.webrtc.stream_key"), "offer").wantError(400, "STREAM_001")
	b.act(b.stream("one"), "start").want(200)
	b.act(b.stream("two"), "start").want(200)
	if late := post(path, key, "offer"); late.want(429).text("error.code") != "STREAM_003" {
		t.Errorf("%s", late.raw)
	}
	if got := b.eventTypes(); strings.Count(got, "stream.error") != 3 {
		t.Errorf("the account hears %s", got)
	}
}
