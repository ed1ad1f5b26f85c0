package main

import (
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// post sends a request to a route that takes 10 bytes, in pieces, and returns
// the status of the answer, 0 when there is none.
func post(t *testing.T, h proxytest.HostEmulator, length string, pieces ...string) (status uint32, body string) {
	t.Helper()
	set(t, h, []string{"xds", "route_name"}, "notes.create@1")
	set(t, h, []string{"source", "address"}, "192.0.2.1:1234")
	id := h.InitializeHttpContext()
	defer h.CompleteHttpContext(id)
	headers := [][2]string{{":path", "/v1/notes"}, {":method", "POST"}, {"x-request-id", "req-1"}}
	if length != "" {
		headers = append(headers, [2]string{"content-length", length})
	}
	action := h.CallOnRequestHeaders(id, headers, len(pieces) == 0)
	for i, p := range pieces {
		if action != types.ActionContinue {
			break
		}
		action = h.CallOnRequestBody(id, []byte(p), i == len(pieces)-1)
	}
	if local := h.GetSentLocalResponse(id); local != nil {
		return local.StatusCode, string(local.Data)
	}
	return 0, ""
}

func TestBodiesAreHeldToTheLimitOfTheirRoute(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		ten := strings.Repeat("a", 10)
		for name, c := range map[string]struct {
			length string
			pieces []string
			want   uint32
		}{
			"none":                      {"", nil, 0},
			"of the limit":              {"10", []string{ten}, 0},
			"announced too large":       {"11", []string{ten, "a"}, 413},
			"announced beyond counting": {"99999999999999999999", []string{"a"}, 0},
			"in pieces, of the limit":   {"", []string{ten[:5], ten[:5]}, 0},
			"in pieces, too large":      {"", []string{ten[:5], ten[:5], "a"}, 413},
			"at once, too large":        {"", []string{ten + "a"}, 413},
		} {
			status, body := post(t, h, c.length, c.pieces...)
			if status != c.want || status != 0 && (!strings.Contains(body, "request_too_large") || !strings.Contains(body, "at most 10 bytes")) {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
	})
}
