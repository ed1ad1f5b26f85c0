package main

import (
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
)

// handOverTraffic puts a batch of n requests into the queue as a worker does.
func handOverTraffic(t *testing.T, n int) {
	t.Helper()
	table := traffic.NewTable()
	for range n {
		table.Add(traffic.Key{Class: 2, Passed: true}, traffic.Request{})
	}
	queue, ok := wasmhost.Traffic.Find(0) // the clock of the module's host stands in the past
	if !ok {
		t.Fatal("no queue is offered")
	}
	if err := proxywasm.EnqueueSharedQueue(queue, traffic.Append(nil, table, &meter.Names{}, &traffic.Reasons{})); err != nil {
		t.Fatal(err)
	}
}

// handed is the last of the n parcels that were handed to the agent.
func handed(t *testing.T, h *host, n int) (call uint32, p traffic.Parcel, requests uint64) {
	t.Helper()
	c := h.to(t, edgeapi.TrafficPath, n)[n-1]
	p, cells, ok := traffic.ParseParcel(c.body)
	if !ok || c.headers["authorization"] != "Bearer t0" {
		t.Fatalf("%v: %x is no parcel", c.headers, c.body)
	}
	for _, cell := range cells {
		requests += cell.Requests
	}
	return c.id, p, requests
}

// Counts go to the agent whether or not a control plane takes usage, one parcel at a time.
func TestTrafficIsHandedOverOneParcelAtATime(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		handOver(t, 1) // usage, which nobody answers
		handOverTraffic(t, 2)
		handOverTraffic(t, 3)
		h.Tick()
		call, p, requests := handed(t, h, 1)
		if p.Boot == "" || p.Sequence != 1 || requests != 5 {
			t.Fatalf("%+v of %d requests", p, requests)
		}
		handOverTraffic(t, 1)
		h.Tick()
		handed(t, h, 1) // the first is under way
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "204"}}, nil, nil)
		h.Tick()
		if _, next, requests := handed(t, h, 2); next.Sequence != 2 || next.Boot != p.Boot || requests != 1 {
			t.Errorf("%+v of %d requests", next, requests)
		}
	})
}

// A parcel is sent again as it was until the agent has it, and given up when it never will.
func TestTrafficIsSentAgain(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		handOverTraffic(t, 2)
		h.Tick()
		call, _, _ := handed(t, h, 1)
		h.CallOnHttpCallResponse(call, nil, nil, nil)
		handOverTraffic(t, 1)
		for range meterRetryTicks {
			h.Tick()
			handed(t, h, 1) // not yet
		}
		h.Tick()
		call, again, requests := handed(t, h, 2)
		if again.Sequence != 1 || requests != 2 {
			t.Fatalf("%+v of %d requests", again, requests)
		}
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "404"}}, nil, nil)
		h.Tick()
		if _, next, requests := handed(t, h, 3); next.Sequence != 2 || requests != 1 {
			t.Errorf("%+v of %d requests", next, requests)
		}
		if n := metric(t, h, "sluice_traffic_batches_lost_total"); n != 1 {
			t.Errorf("%d parcels are lost, want 1", n)
		}
	})
}

// What the agent never takes does not fill the memory.
func TestTrafficThatWaitsIsBounded(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		table, names, reasons := traffic.NewTable(), &meter.Names{}, &traffic.Reasons{}
		for i := range uint32(300) {
			table.Add(traffic.Key{Route: i, Class: 2}, traffic.Request{})
		}
		raw := traffic.Append(nil, table, names, reasons)
		queue, _ := wasmhost.Traffic.Find(0)
		most := trafficWaitingBytes/len(raw) + 1
		for n := range most + 5 {
			if err := proxywasm.EnqueueSharedQueue(queue, raw); err != nil {
				t.Fatal(err)
			}
			if n%50 == 0 {
				h.Tick()
			}
		}
		h.Tick()
		_, p, _ := handed(t, h, 1)
		if len(p.Append(nil)) > traffic.MaxParcel || metric(t, h, "sluice_traffic_batches_lost_total") == 0 {
			t.Errorf("a parcel of %d bytes, %d batches are lost", len(p.Batches), metric(t, h, "sluice_traffic_batches_lost_total"))
		}
	})
}
