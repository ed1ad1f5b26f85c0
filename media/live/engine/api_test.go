package engine

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func api(t *testing.T, h http.HandlerFunc) API {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return API{Base: s.URL, Client: s.Client()}
}

func TestEveryPageOfPathsIsRead(t *testing.T) {
	t.Parallel()
	a := api(t, func(w http.ResponseWriter, r *http.Request) {
		path := `{"name":"live/play_` + r.URL.Query().Get("page") + `","ready":true,"source":{"type":"rtmpConn","id":"c"},"tracks":["H264"],"bytesReceived":5}`
		_, _ = w.Write([]byte(`{"itemCount":6,"pageCount":3,"items":[` + path + `,{"name":"live/x","ready":false}]}`))
	})
	found, err := a.Ready(t.Context())
	if err != nil || len(found) != 3 || found[2].Name != "live/play_2" || found[0].Received != 5 || found[0].Tracks[0] != "H264" {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestOtherPathsAreNotOurs(t *testing.T) {
	t.Parallel()
	a := api(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"pageCount":1,"items":[{"name":"cam","ready":true,"source":{"id":"c"}},{"name":"live/a","ready":true},{"name":"live/b","source":{"id":"c"}}]}`))
	})
	if found, err := a.Ready(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestAnswersThatAreErrors(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	} {
		if found, err := api(t, h).Ready(t.Context()); err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestPublishersAreClosedByTheirKind(t *testing.T) {
	t.Parallel()
	var asked string
	a := api(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.Method + " " + r.URL.Path })
	for kind, want := range map[string]string{"rtmpConn": "rtmpconns", "srtConn": "srtconns", "webRTCSession": "webrtcsessions"} {
		p := Path{}
		p.Source = &struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}{kind, "id-1"}
		if err := a.Kick(t.Context(), p); err != nil || asked != "POST /v3/"+want+"/kick/id-1" {
			t.Errorf("%s: %s, %v", kind, asked, err)
		}
		p.Source.Type = "rtspSource"
		if err := a.Kick(t.Context(), p); err == nil {
			t.Error("a kind that nobody knows is closed")
		}
	}
}

func TestWhichAddressesAreThisMachine(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "192.0.2.1": false, "0.0.0.0": false, "": false, "localhost": false} {
		if got := local(ip); got != want {
			t.Errorf("%q: %v", ip, got)
		}
	}
}
