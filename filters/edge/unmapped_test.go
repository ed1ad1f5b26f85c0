package main

import (
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/routehint"
)

// routesOf puts the text of a listener's routes where Envoy has it.
func routesOf(t *testing.T, h proxytest.HostEmulator, sum string, routes ...routehint.Route) {
	t.Helper()
	var text []byte
	for _, r := range routes {
		text = routehint.Append(text, r)
	}
	set(t, h, []string{"xds", "virtual_host_metadata", "filter_metadata", "sluice", "routes"}, string(text))
	set(t, h, []string{"xds", "virtual_host_metadata", "filter_metadata", "sluice", "sum"}, sum)
}

// A request that no route takes is told what comes near, from the routes that are in
// force; OPTIONS of a mapped path gets its methods.
func TestUnmappedRequest(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		routesOf(t, h, "1", routehint.Route{Path: "/v1/x", Methods: []string{"POST", "DELETE"}})
		r := send(t, h, "unmapped")
		if r.status != 403 || r.response["allow"] != "POST, DELETE, OPTIONS" ||
			!strings.Contains(r.body, `"details":[{"field":"method","issue":"GET is not mapped here; this path takes POST and DELETE","expected":"POST, DELETE"}]`) {
			t.Errorf("%+v", r)
		}
		if r := send(t, h, "unmapped", [2]string{":method", "OPTIONS"}); r.status != 204 || r.body != "" || r.response["allow"] != "POST, DELETE, OPTIONS" || r.response["x-ratelimit-limit"] != "50" {
			t.Errorf("%+v", r)
		}
		routesOf(t, h, "2", routehint.Route{Path: "/v2/x", Methods: []string{"GET", "HEAD"}})
		if r := send(t, h, "unmapped"); r.status != 403 || r.response["allow"] != "" || !strings.Contains(r.body, `"expected":"GET, HEAD /v2/x"`) {
			t.Errorf("%+v", r)
		}
		if r := send(t, h, "unmapped", [2]string{":method", "OPTIONS"}); r.status != 403 {
			t.Errorf("%+v", r)
		}
		routesOf(t, h, "3", routehint.Route{Path: "/elsewhere"})
		for range 50 { // of one address in a minute
			r = send(t, h, "unmapped")
		}
		if r.status != 403 || strings.Contains(r.body, "details") {
			t.Errorf("%+v", r)
		}
		routesOf(t, h, "4", routehint.Route{Path: "/v1/x", Methods: []string{"POST"}})
		if r := send(t, h, "unmapped"); r.status != 403 || strings.Contains(r.body, "details") {
			t.Errorf("who has asked too often learns more: %+v", r)
		}
		if r := send(t, h, "unmapped", [2]string{":method", "OPTIONS"}); r.status != 429 || r.response["retry-after"] == "" {
			t.Errorf("%+v", r)
		}
	})
}

// A worker looks for what comes near a bounded number of times a second.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	var h hints
	for second := range int64(3) {
		n := 0
		for range 3 * maxHints {
			if h.take(second + 1) {
				n++
			}
		}
		if n != maxHints {
			t.Errorf("%d looks in a second", n)
		}
	}
}
