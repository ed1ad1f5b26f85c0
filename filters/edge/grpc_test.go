package main

import (
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/decision"
)

var rpc = [2]string{"content-type", "application/grpc+proto"}

// A refused call by gRPC gets what its client reads, on routes whose product speaks it and
// where there is no route; other requests, and other routes, get the envelope.
func TestRefusedCallByGRPC(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(secretRecord(), keyRecord())
		r := send(t, h, "rpc@1 POST grpc", rpc)
		if r.status != 200 || r.body != "" || r.response["content-type"] != "application/grpc" || r.response["grpc-status"] != "16" ||
			r.response["grpc-message"] != decision.Lookup(decision.AuthRequired).Message+" Authorization is missing; expected: Authorization: Bearer <API key>, or the API key alone in x-api-key." || r.response[decision.GRPCCodeHeader] != "authentication_required" ||
			r.response[decision.GRPCDocsHeader] != "http://gw/docs/errors/authentication_required" || r.response["x-ratelimit-limit"] != "50" {
			t.Errorf("%+v", r)
		}
		if r := send(t, h, "rpc@1 POST grpc", rpc, [2]string{"authorization", "Bearer " + key}); r.response["grpc-status"] != "7" ||
			!strings.Contains(r.response["grpc-message"], "expected: rpc:call") {
			t.Errorf("%+v", r)
		}
		if r := send(t, h, "unmapped", rpc); r.response["grpc-status"] != "12" {
			t.Errorf("%+v", r)
		}
		for _, r := range []reply{send(t, h, "rpc@1 POST grpc"), send(t, h, "streams.list", rpc)} {
			if r.status != 401 || !strings.Contains(r.body, `"authentication_required"`) || r.response["grpc-status"] != "" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A call that failed counts as a failure, whatever its HTTP status.
func TestCallByGRPCCountsByItsStatus(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue := keysync(t, h)
		for _, c := range []struct {
			headers, trailers [][2]string
			end               bool
			want              uint8
		}{
			{[][2]string{rpc}, [][2]string{{"grpc-status", "0"}}, false, 2},
			{[][2]string{rpc}, [][2]string{{"grpc-status", "5"}}, false, 4},
			{[][2]string{rpc}, [][2]string{{"grpc-status", "42"}}, false, 5},
			{[][2]string{rpc, {"grpc-status", "14"}}, nil, true, 5},
			{[][2]string{rpc}, nil, false, 4},
			{[][2]string{{"content-type", "application/json"}}, nil, false, 2},
		} {
			set(t, h, []string{"xds", "route_name"}, "rpc.open@1 POST grpc")
			id := h.InitializeHttpContext()
			h.CallOnRequestHeaders(id, [][2]string{rpc, {":method", "POST"}}, false)
			h.CallOnResponseHeaders(id, append([][2]string{{":status", "200"}}, c.headers...), c.end)
			if c.trailers != nil {
				h.CallOnResponseTrailers(id, c.trailers)
			}
			h.CompleteHttpContext(id)
			b, ok := takeUsage(t, h, queue)
			if got := found(b, "rpc.open", c.want); !ok || got.Requests != 1 || len(b.Counts) != 1 {
				t.Errorf("%v, %v: %+v, want class %d", c.headers, c.trailers, b.Counts, c.want)
			}
		}
	})
}
