package main

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/traffic"
)

// takeTraffic is what the worker hands over with its next tick.
func takeTraffic(t *testing.T, h proxytest.HostEmulator, queue uint32) []traffic.Cell {
	t.Helper()
	h.Tick()
	if h.GetQueueSize(queue) == 0 {
		return nil
	}
	raw, err := proxywasm.DequeueSharedQueue(queue)
	if err != nil {
		t.Fatal(err)
	}
	_, cells, ok := traffic.ParseParcel(traffic.Parcel{Boot: "b", Sequence: 1, Batches: bytes.Clone(raw)}.Append(nil))
	if !ok {
		t.Fatalf("%x is no batch", raw)
	}
	return cells
}

func TestRequestsAreCountedForMetrics(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue, err := wasmhost.Traffic.Register()
		if err != nil {
			t.Fatal(err)
		}
		wasmhost.Traffic.Offer(queue, time.Now().Unix())
		takeTraffic(t, h, queue) // what earlier tests left
		load(keyRecord(), secretRecord())
		details := func(v string) { set(t, h, []string{"response", "code_details"}, v) }

		details("via_upstream")
		exchange(t, h, "streams.list", 200, 7, 101, bearer(key))
		exchange(t, h, "streams.list", 404, 0, 0, bearer(key))
		exchange(t, h, "notes.create@1", 0, 3, 0) // the client left
		details("upstream_response_timeout")
		exchange(t, h, "health", 504, 0, 0)
		details("direct_response")
		exchange(t, h, "health", 404, 0, 0)
		exchange(t, h, "clips.create", 403, 0, 0, bearer(key)) // lacks a scope
		exchange(t, h, "unmapped", 403, 0, 0)
		exchange(t, h, "not in the policy", 503, 0, 0)
		type row struct {
			route, product, method string
			class                  uint8
			reason                 string
			passed, answered       bool
		}
		got := map[row]uint64{}
		for _, c := range takeTraffic(t, h, queue) {
			got[row{c.Route.Name, c.Route.Product, c.Method, c.Class, c.Reason, c.Passed, c.Upstream.Count() > 0}] += c.Requests
		}
		want := map[row]uint64{
			{"streams.list", "media", "POST", 2, "", true, true}:          1,
			{"streams.list", "media", "POST", 4, "", true, true}:          1,
			{"notes.create", "", "POST", 0, "", true, false}:              1,
			{"health", "", "POST", 5, "gateway_timeout", true, false}:     1,
			{"health", "", "POST", 4, "", true, true}:                     1,
			{"clips.create", "", "POST", 4, "AUTH_002", false, false}:     1,
			{"unmapped", "", "POST", 4, "ROUTE_NOT_MAPPED", false, false}: 1,
			{"", "", "", 5, "edge_not_ready", false, false}:               1,
		}
		for r, n := range want {
			if got[r] != n {
				t.Errorf("%+v: %d, want %d", r, got[r], n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d rows, want %d: %+v", len(got), len(want), got)
		}
	})
}

// A request that Envoy answers before any filter has seen it counts by what Envoy knows of it.
func TestRequestsThatNoFilterSawAreCounted(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue, err := wasmhost.Traffic.Register()
		if err != nil {
			t.Fatal(err)
		}
		wasmhost.Traffic.Offer(queue, time.Now().Unix())
		takeTraffic(t, h, queue)
		number := func(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
		for path, v := range map[string][]byte{"code": number(431)} {
			if err := h.SetProperty([]string{"response", path}, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.SetProperty([]string{"request", "duration"}, number(int64(3*time.Millisecond))); err != nil {
			t.Fatal(err)
		}
		h.CompleteHttpContext(h.InitializeHttpContext())
		cells := takeTraffic(t, h, queue)
		if len(cells) != 1 || cells[0].Class != 4 || cells[0].Reason != "headers_too_large" || cells[0].Passed || cells[0].Route.Name != "" || cells[0].Took.Micros != 3000 {
			t.Errorf("%+v", cells)
		}
	})
}
