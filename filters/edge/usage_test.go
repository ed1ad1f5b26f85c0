package main

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
)

// takeUsage is what the worker hands over with its next tick; ok is false for
// nothing.
func takeUsage(t *testing.T, h proxytest.HostEmulator, queue uint32) (b meter.Batch, ok bool) {
	t.Helper()
	h.Tick()
	if h.GetQueueSize(queue) == 0 {
		return b, false
	}
	raw, err := proxywasm.DequeueSharedQueue(queue)
	if err != nil {
		t.Fatal(err)
	}
	if b, ok = meter.Parse(bytes.Clone(raw)); !ok {
		t.Fatalf("%x is no batch", raw)
	}
	return b, true
}

// keysync opens the queue as keysync does, and takes what earlier tests left.
func keysync(t *testing.T, h proxytest.HostEmulator) uint32 {
	t.Helper()
	queue, err := proxywasm.RegisterSharedQueue("meter")
	if err != nil {
		t.Fatal(err)
	}
	wasmhost.Usage.Offer(queue, time.Now().Unix())
	takeUsage(t, h, queue)
	return queue
}

// exchange is a request whose answer has a status, with bodies of some bytes in
// two pieces each.
func exchange(t *testing.T, h proxytest.HostEmulator, route string, status, in, out int, headers ...[2]string) {
	t.Helper()
	set(t, h, []string{"xds", "route_name"}, route)
	set(t, h, []string{"source", "address"}, "192.0.2.7:1234")
	id := h.InitializeHttpContext()
	h.CallOnRequestHeaders(id, append([][2]string{{":path", "/v1/x"}, {":method", "POST"}}, headers...), false)
	answer := [][2]string{{":status", strconv.Itoa(status)}}
	if local := h.GetSentLocalResponse(id); local != nil {
		answer, out = local.Headers, len(local.Data)
	} else {
		h.CallOnRequestBody(id, make([]byte, in/2), false)
		h.CallOnRequestBody(id, make([]byte, in-in/2), true)
	}
	if status > 0 {
		h.CallOnResponseHeaders(id, answer, false)
		h.CallOnResponseBody(id, make([]byte, out/2), false)
		h.CallOnResponseBody(id, make([]byte, out-out/2), true)
	}
	h.CompleteHttpContext(id)
}

// found is the count of a route and class.
func found(b meter.Batch, route string, class uint8) (c meter.Count) {
	for _, c := range b.Counts {
		if c.Route.Name == route && c.Class == class {
			return c
		}
	}
	return c
}

func TestRequestsAreMetered(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue := keysync(t, h)
		load(keyRecord(), secretRecord())
		exchange(t, h, "streams.list", 200, 7, 101, bearer(key))
		exchange(t, h, "streams.list", 201, 0, 0, bearer(key))
		exchange(t, h, "streams.get", 0, 3, 0, bearer(key)) // the client left
		exchange(t, h, "clips.create", 403, 0, 0, bearer(key))
		exchange(t, h, "health", 200, 0, 15)
		exchange(t, h, "not in the policy", 503, 0, 0)
		b, ok := takeUsage(t, h, queue)
		if !ok || len(b.Counts) != 5 {
			t.Fatalf("%v %+v", ok, b)
		}
		for _, c := range []struct {
			route                      string
			class                      uint8
			account, key               uint64
			requests, refused, in, out uint64
		}{
			{"streams.list", 2, 9, 7, 2, 0, 7, 101}, {"streams.get", 0, 9, 7, 1, 0, 3, 0}, {"clips.create", 4, 9, 7, 1, 1, 0, 0},
			{"health", 2, 0, 0, 1, 0, 0, 15}, {"", 5, 0, 0, 1, 1, 0, 0},
		} {
			got := found(b, c.route, c.class)
			if got.Account != c.account || got.Key != c.key || got.Requests != c.requests || got.Refused != c.refused || got.In != c.in {
				t.Errorf("%s: %+v, want %+v", c.route, got, c)
			}
			if c.refused == 0 && got.Out != c.out || c.refused > 0 && got.Out == 0 {
				t.Errorf("%s: %d bytes out, want %d", c.route, got.Out, c.out)
			}
		}
		if _, again := takeUsage(t, h, queue); again {
			t.Error("the same usage was handed over twice")
		}
	})
}

func TestUsageWaitsForKeysync(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue := keysync(t, h)
		load(keyRecord(), secretRecord())
		wasmhost.Usage.Offer(queue, 0)
		exchange(t, h, "health", 200, 0, 0)
		if _, ok := takeUsage(t, h, queue); ok {
			t.Error("usage went into a queue that nobody reads")
		}
		exchange(t, h, "health", 200, 0, 0)
		wasmhost.Usage.Offer(queue, time.Now().Unix())
		if b, ok := takeUsage(t, h, queue); !ok || found(b, "health", 2).Requests != 2 {
			t.Errorf("%v %+v", ok, b)
		}
		if n, err := h.GetCounterMetric(meter.BegunMetric); err != nil || n != 1 {
			t.Errorf("%d batches were begun, %v", n, err)
		}
	})
}

func TestTheLastUseOfAKeyIsNoted(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue := keysync(t, h)
		r := keyRecord()
		r.ID = uint64(time.Now().UnixNano()) // one that no test has used in this minute
		load(r, secretRecord())
		exchange(t, h, "streams.list", 200, 0, 0, bearer(key))
		exchange(t, h, "streams.list", 200, 0, 0, bearer(key))
		b, _ := takeUsage(t, h, queue)
		if len(b.Uses) == 0 || b.Uses[0].Key != r.ID || b.Uses[0].Address != "192.0.2.7:1234" {
			t.Errorf("%+v", b.Uses)
		}
	})
}
