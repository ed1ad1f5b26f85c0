package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/caps"
	"sluice.dev/sluice/filters/host/wasmtest"
)

const (
	ask    = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":9999,"tools":[]}`
	capped = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":4096,"tools":[],"stream":true,"stream_options":{"include_usage":true},"max_tokens":1024}`
)

func both(t *testing.T, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	wasmtest.Both(t, "chatcaps", &vm{}, []byte("https://gw"), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s, h.GetCriticalLogs())
		}
		body(t, h)
	})
}

// sent is what became of a request.
type sent struct {
	status uint32 // 0: it passed
	body   string
	length string // the content-length that went on
}

// send passes a request through in pieces of the body.
func send(t *testing.T, h proxytest.HostEmulator, headers [][2]string, pieces ...string) sent {
	t.Helper()
	id := h.InitializeHttpContext()
	defer h.CompleteHttpContext(id)
	action := h.CallOnRequestHeaders(id, append([][2]string{{":method", "POST"}, {"x-request-id", "req-1"}}, headers...), len(pieces) == 0)
	for i, p := range pieces {
		if h.GetSentLocalResponse(id) != nil {
			break
		}
		if action != types.ActionPause {
			t.Fatal("the headers went on without the body")
		}
		action = h.CallOnRequestBody(id, []byte(p), i == len(pieces)-1)
	}
	if local := h.GetSentLocalResponse(id); local != nil {
		if action != types.ActionPause {
			t.Fatal("a request that was answered went on")
		}
		return sent{status: local.StatusCode, body: string(local.Data)}
	}
	if action != types.ActionContinue {
		t.Fatal("the request is stuck")
	}
	s := sent{body: string(h.GetCurrentRequestBody(id))}
	for _, header := range h.GetCurrentRequestHeaders(id) {
		if header[0] == "content-length" {
			s.length = header[1]
		}
	}
	return s
}

func length(n int) [2]string { return [2]string{"content-length", strconv.Itoa(n)} }

func TestBodyIsCapped(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for name, c := range map[string]struct {
			headers [][2]string
			pieces  []string
			want    sent
		}{
			"in one piece": {[][2]string{length(len(ask))}, []string{ask}, sent{0, capped, strconv.Itoa(len(capped))}},
			"in pieces":    {[][2]string{length(len(ask))}, []string{ask[:10], ask[10:50], ask[50:]}, sent{0, capped, strconv.Itoa(len(capped))}},
			"chunked":      {nil, []string{ask}, sent{0, capped, ""}},
			"nothing to do": {[][2]string{length(len(capped)), {"content-encoding", "identity"}}, []string{capped},
				sent{0, capped, strconv.Itoa(len(capped))}},
			"tools stripped": {[][2]string{{caps.StripHeader, "1"}}, []string{ask}, sent{0, strings.Replace(capped, `,"tools":[]`, "", 1), ""}},
			"header not 1":   {[][2]string{{caps.StripHeader, "0"}}, []string{ask}, sent{0, capped, ""}},
		} {
			if got := send(t, h, c.headers, c.pieces...); got != c.want {
				t.Errorf("%s:\n got  %+v\n want %+v", name, got, c.want)
			}
		}
	})
}

func TestLargeBody(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		text := strings.Repeat("lorem ipsum ", 200_000)
		body := strings.Replace(ask, "hi", text, 1)
		if got := send(t, h, nil, body[:1<<20], body[1<<20:]); got.body != strings.Replace(capped, "hi", text, 1) {
			t.Errorf("%d: %d bytes", got.status, len(got.body))
		}
	})
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for name, c := range map[string]struct {
			headers [][2]string
			pieces  []string
			status  uint32
			code    string
			fields  int
		}{
			"no body":            {nil, nil, 400, "invalid_request", 1},
			"no JSON":            {nil, []string{`{"model":`}, 400, "invalid_request", 1},
			"two bad fields":     {nil, []string{`{}`}, 400, "invalid_request", 2},
			"declared too large": {[][2]string{length(caps.DefaultMaxBytes + 1)}, []string{ask}, 413, "request_too_large", 1},
			"compressed":         {[][2]string{{"content-encoding", "gzip"}}, []string{ask}, 415, "unsupported_media_type", 1},
		} {
			got := send(t, h, c.headers, c.pieces...)
			var e struct {
				Error struct {
					Code, Request_ID, Documentation_URL string
					Details                             []any
				}
			}
			if err := json.Unmarshal([]byte(got.body), &e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.status != c.status || e.Error.Code != c.code || len(e.Error.Details) != c.fields || e.Error.Request_ID != "req-1" ||
				e.Error.Documentation_URL != "https://gw/docs/errors/"+c.code {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	})
}

func TestBodyWithTrailers(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for body, want := range map[string]sent{ask: {0, capped, ""}, `[]`: {400, "", ""}} {
			id := h.InitializeHttpContext()
			h.CallOnRequestHeaders(id, [][2]string{{":method", "POST"}}, false)
			if a := h.CallOnRequestBody(id, []byte(body), false); a != types.ActionPause {
				t.Fatal("the body went on before its end")
			}
			action := h.CallOnRequestTrailers(id, [][2]string{{"x", "y"}})
			if local := h.GetSentLocalResponse(id); local != nil {
				if local.StatusCode != want.status || action != types.ActionPause {
					t.Errorf("%s: %d", body, local.StatusCode)
				}
			} else if got := string(h.GetCurrentRequestBody(id)); got != want.body || action != types.ActionContinue {
				t.Errorf("%s: %s", body, got)
			}
			h.CompleteHttpContext(id)
		}
	})
}

func TestBadConfiguration(t *testing.T) {
	wasmtest.Both(t, "chatcaps", &vm{}, make([]byte, maxDocs+1), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusFailed {
			t.Error("an address of 2 KB is accepted")
		}
	})
}
