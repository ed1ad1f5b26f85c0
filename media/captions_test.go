package media_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identityheader"
)

var otherAccount = identityheader.Caller{Account: "acct_2", Key: "key_2"}

const cues = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"

func TestCaptionsAreAddedServedAndRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Show")
	path := "/v1/streams/" + id + "/captions"
	made := b.do("POST", path, object{"language": "pt-BR", "label": "Português", "content": cues}).want(201)
	if made.text("language") != "pt-br" || made.text("status") != "ready" || made.get("cues") != 1.0 {
		t.Errorf("%s", made.raw)
	}
	if got := b.fetch(made.text("url")).want(200); string(got.raw) != cues || !strings.HasPrefix(got.header.Get("Content-Type"), "text/vtt") {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", path, object{"language": "PT-br"}).wantError(409, "conflict")
	declared := b.do("POST", path, object{"language": "en"}).want(201)
	if declared.text("status") != "empty" || declared.get("url") != nil {
		t.Errorf("%s", declared.raw)
	}
	b.fetch(strings.Replace(made.text("url"), "pt-br", "en", 1)).wantError(404, "not_found")
	b.do("PUT", path+"/en", object{"content": cues, "kind": "subtitles"}).want(200)
	b.do("PUT", path+"/fr", object{"content": cues}).wantError(404, "not_found")
	if all := b.do("GET", path, nil).want(200); all.text("data.0.language") != "en" || all.text("data.0.status") != "ready" || all.text("data.1.label") != "Português" {
		t.Errorf("%s", all.raw)
	}
	b.do("DELETE", path+"/EN", nil).want(204)
	b.do("DELETE", path+"/en", nil).wantError(404, "not_found")
	if b.eventTypes() != "captions.generated captions.generated" || b.events()[0].Data["language"] != "pt-br" {
		t.Error(b.eventTypes())
	}
}

func TestCaptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/streams/" + b.stream("Show") + "/captions"
	b.do("POST", path, object{"language": "english!", "kind": "poem", "label": strings.Repeat("x", 101)}).wantError(400, "invalid_request", "language", "kind", "label")
	b.do("POST", path, object{"language": "en", "content": "Hello"}).wantError(400, "STORAGE_002", "content")
	b.do("POST", path, object{"language": "en", "content": cues + strings.Repeat("x", 1<<20)}).wantError(413, "STORAGE_001", "content")
	b.do("POST", path, object{"language": "en", "content": cues + "\x00"}).wantError(400, "invalid_request", "content")
	b.do("POST", path, object{"language": "en", "generate": true}).wantError(501, "not_implemented")
	b.do("POST", path, object{"language": "en", "generate": true, "content": cues}).wantError(400, "invalid_request", "content")
	b.as(otherAccount, "POST", path, object{"language": "en"}).wantError(404, "not_found")
	b.as(otherAccount, "GET", path, nil).wantError(404, "not_found")
	b.as(otherAccount, "DELETE", path+"/en", nil).wantError(404, "not_found")
}

func TestCaptionsOfASignedStreamAskForItsToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.do("POST", "/v1/streams", object{"title": "Members", "playback_policy": "signed"}).want(201).text("id")
	url := b.do("POST", "/v1/streams/"+id+"/captions", object{"language": "en", "content": cues}).want(201).text("url")
	b.fetch(url).wantError(401, "invalid_token")
	b.fetch(url + "?token=" + b.do("POST", "/v1/streams/"+id+"/tokens", nil).want(201).text("token")).want(200)
}
