package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/wasmtest"
	"sluice.dev/sluice/filters/httpcache"
	"sluice.dev/sluice/filters/identityheader"
)

func both(t *testing.T, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	config := httpcache.Append(nil, []httpcache.Rule{{Key: "r@1", Route: "r", Digest: httpcache.Digest{1}, TTL: 60, MaxBytes: 20, Vary: []string{"accept"}}})
	wasmtest.Both(t, "cache", &vm{}, config, func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s, h.GetCriticalLogs())
		}
		body(t, h)
	})
}

// exchange makes a request of a route, which the product answers in pieces unless the
// filter does; it returns what the client gets, and what the cache says of it.
func exchange(t *testing.T, h proxytest.HostEmulator, route, path string, request, response [][2]string, pieces ...string) (body, status string) {
	t.Helper()
	if err := h.SetProperty([]string{"xds", "route_name"}, []byte(route)); err != nil {
		t.Fatal(err)
	}
	id := h.InitializeHttpContext()
	defer h.CompleteHttpContext(id)
	all := append([][2]string{{":method", "GET"}, {":authority", "gw"}, {":path", path}}, request...)
	action := h.CallOnRequestHeaders(id, all, true)
	if local := h.GetSentLocalResponse(id); local != nil {
		if action != types.ActionPause {
			t.Fatal("a request that was answered went on")
		}
		for _, header := range local.Headers {
			if header[0] == "cache-status" {
				status = header[1]
			}
		}
		return fmt.Sprint(local.StatusCode, " ", string(local.Data)), status
	}
	if action != types.ActionContinue {
		t.Fatal("a request is stuck")
	}
	h.CallOnResponseHeaders(id, append([][2]string{{":status", "200"}, {"content-type", "a"}}, response...), len(pieces) == 0)
	for _, header := range h.GetCurrentResponseHeaders(id) {
		if header[0] == "cache-status" {
			status = header[1]
		}
	}
	for i, p := range pieces {
		if h.CallOnResponseBody(id, []byte(p), i == len(pieces)-1) != types.ActionContinue {
			t.Fatal("an answer is stuck")
		}
	}
	return strings.Join(pieces, ""), status
}

func caller(account string) [2]string {
	return [2]string{identityheader.Header, "v2;u=p;a=" + account + ";k=key_1;p=pro;s=;e=1;m=0"}
}

func TestAnswersAreGivenAgain(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		one, two := [][2]string{caller("acct_1")}, [][2]string{caller("acct_2")}
		for i, c := range []struct {
			route, path         string
			request             [][2]string
			response            [][2]string
			pieces              []string
			wantBody, wantState string
		}{
			{"r@1", "/a", one, nil, []string{"first ", "answer"}, "first answer", "sluice; fwd=miss; stored"},
			{"r@1", "/a", one, nil, []string{"second"}, "200 first answer", "sluice; hit"},
			{"r@1", "/a", two, nil, []string{"another's"}, "another's", "sluice; fwd=miss; stored"},
			{"r@1", "/a", one, nil, nil, "200 first answer", "sluice; hit"},
			{"r@2", "/a", one, nil, []string{"of a version without rules"}, "of a version without rules", ""},
			{"r@1", "/b", one, [][2]string{{"set-cookie", "a"}}, []string{"private"}, "private", "sluice; fwd=miss"},
			{"r@1", "/c", one, nil, []string{"more than ", "twenty bytes of body"}, "more than twenty bytes of body", "sluice; fwd=miss; stored"},
			{"r@1", "/c", one, nil, []string{"again"}, "again", "sluice; fwd=miss; stored"},
			{"r@1", "/d", one, [][2]string{{"content-length", "9"}}, []string{"cut off"}, "cut off", "sluice; fwd=miss; stored"},
			{"r@1", "/d", one, nil, []string{"whole"}, "whole", "sluice; fwd=miss; stored"},
			{"r@1", "/d", append(one, [2]string{"cookie", "a"}), nil, []string{"with a cookie"}, "with a cookie", "sluice; fwd=bypass"},
			{"r@1", "/d", append(one, [2]string{"cache-control", "no-cache"}), nil, []string{"anew"}, "anew", "sluice; fwd=request; stored"},
			{"r@1", "/d", one, nil, nil, "200 anew", "sluice; hit"},
		} {
			if body, state := exchange(t, h, c.route, c.path, c.request, c.response, c.pieces...); body != c.wantBody || state != c.wantState {
				t.Errorf("%d: %q, %q, want %q, %q", i, body, state, c.wantBody, c.wantState)
			}
		}
		for name, want := range map[string]uint64{"hit.r": 3, "miss.r": 8, "bypass.r": 1, "stored.r": 5} {
			if got, err := h.GetCounterMetric(httpcache.CountersPrefix + name); err != nil || got != want {
				t.Errorf("%s: %d, want %d: %v", name, got, want, err)
			}
		}
		if heldBytes != 0 {
			t.Errorf("%d bytes are held by nobody", heldBytes)
		}
	})
}

// An answer that the product breaks off, or ends in trailers, is not kept.
func TestBrokenAnswersAreNotKept(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		request := [][2]string{{":method", "GET"}, {":authority", "gw"}, {":path", "/broken"}, caller("acct_1")}
		for _, trailers := range []bool{false, true} {
			if err := h.SetProperty([]string{"xds", "route_name"}, []byte("r@1")); err != nil {
				t.Fatal(err)
			}
			id := h.InitializeHttpContext()
			h.CallOnRequestHeaders(id, request, true)
			h.CallOnResponseHeaders(id, [][2]string{{":status", "200"}, {"content-type", "a"}}, false)
			h.CallOnResponseBody(id, []byte("a part"), false)
			if trailers {
				h.CallOnResponseTrailers(id, [][2]string{{"x-end", "1"}})
			}
			h.CompleteHttpContext(id)
		}
		if body, _ := exchange(t, h, "r@1", "/broken", [][2]string{caller("acct_1")}, nil, "whole"); body != "whole" || heldBytes != 0 {
			t.Errorf("%q, %d bytes held", body, heldBytes)
		}
	})
}

func TestConfigurationsThatAreNone(t *testing.T) {
	wasmtest.Both(t, "cache", &vm{}, []byte("SLC\x01\x05"), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusFailed {
			t.Error(s)
		}
	})
}
