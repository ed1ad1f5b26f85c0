package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// noted is what a request left for the access log.
func noted(t *testing.T) string {
	t.Helper()
	b, _ := proxywasm.GetProperty([]string{edgeapi.WouldState})
	return string(b)
}

// A request that would have been refused reaches the product with its identity, is
// counted and noted, and shows no limit that is not enforced.
func TestARequestInTheShadowPasses(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue, err := wasmhost.Traffic.Register()
		if err != nil {
			t.Fatal(err)
		}
		wasmhost.Traffic.Offer(queue, time.Now().Unix())
		takeTraffic(t, h, queue)
		load(keyRecord(), secretRecord())
		set(t, h, []string{"response", "code_details"}, "via_upstream")
		set(t, h, []string{edgeapi.WouldState}, "-")
		r := send(t, h, "shadow.scope", bearer(key))
		if _, err := told("media", r.request[identityheader.Header], signedAt(t, r.request[identityheader.Header])); r.status != 0 || err != nil {
			t.Errorf("%d %q: %v", r.status, r.request[identityheader.Header], err)
		}
		if got := noted(t); got != "c=AUTH_002;f=scope;i=is not granted to this credential;x=clips:write" {
			t.Errorf("noted %q", got)
		}
		if r.response[ratelimit.LimitHeader] != "3" {
			t.Errorf("an enforced limit is not shown: %v", r.response)
		}
		set(t, h, []string{edgeapi.WouldState}, "-")
		for i := range 5 {
			r := send(t, h, "shadow.limit", bearer(key))
			if r.status != 0 || r.response[ratelimit.StateHeader] != "" {
				t.Errorf("request %d: %d %v", i, r.status, r.response)
			}
			if (noted(t) != "-") != (i >= 3) {
				t.Errorf("request %d: noted %q", i, noted(t))
			}
		}
		if r := send(t, h, "shadow.scope"); r.status != 401 {
			t.Errorf("nobody passes: %d", r.status)
		}
		set(t, h, []string{"response", "code_details"}, "upstream_response_timeout")
		exchange(t, h, "shadow.scope", 504, 0, 0, bearer(key))
		got := map[string]uint64{}
		for _, c := range takeTraffic(t, h, queue) {
			got[strings.Join([]string{c.Route.Name, c.Would, c.Reason}, "|")] += c.Requests
		}
		for row, want := range map[string]uint64{"shadow.scope|AUTH_002|": 1, "shadow.scope|AUTH_002|gateway_timeout": 1, "shadow.limit||": 3,
			"shadow.limit|rate_limit_exceeded|": 2, "shadow.scope||authentication_required": 1} {
			if got[row] != want {
				t.Errorf("%s: %d, want %d, of %v", row, got[row], want, got)
			}
		}
	})
}

// A body that is too large is refused in the shadow too.
func TestTheShadowBoundsBodies(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		set(t, h, []string{"xds", "route_name"}, "shadow.scope")
		set(t, h, []string{"source", "address"}, "192.0.2.1:1234")
		id := h.InitializeHttpContext()
		defer h.CompleteHttpContext(id)
		h.CallOnRequestHeaders(id, [][2]string{{":path", "/v1/x"}, {":method", "POST"}, {"x-request-id", "req-1"}, {"content-length", "11"}, bearer(key)}, false)
		if local := h.GetSentLocalResponse(id); local == nil || local.StatusCode != 413 {
			t.Errorf("%+v", local)
		}
	})
}
