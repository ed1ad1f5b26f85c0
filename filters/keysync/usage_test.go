package main

import (
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
)

// handOver puts a batch of n requests into the queue as a worker does.
func handOver(t *testing.T, n int) {
	t.Helper()
	table := meter.NewTable()
	for range n {
		table.Add(meter.Key{Account: 1, Class: 2}, meter.Request{})
	}
	queue, ok := wasmhost.Usage.Find(0) // the clock of the module's host stands in the past
	if !ok {
		t.Fatal("no queue is offered")
	}
	if err := proxywasm.EnqueueSharedQueue(queue, meter.Append(nil, table, &meter.Names{}, &meter.Uses{}, 1000)); err != nil {
		t.Fatal(err)
	}
}

// sent is the last of the n parcels that were sent.
func sent(t *testing.T, h *host, n int) (call uint32, p meter.Parcel, requests uint64) {
	t.Helper()
	c := h.to(t, edgeapi.UsagePath, n)[n-1]
	p, batches, ok := meter.ParseParcel(c.body)
	if !ok {
		t.Fatalf("%x is no parcel", c.body)
	}
	for _, b := range batches {
		requests += b.Counts[0].Requests
	}
	return c.id, p, requests
}

func metric(t *testing.T, h *host, name string) uint64 {
	t.Helper()
	n, err := h.GetCounterMetric(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUsageIsSentOneParcelAtATime(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		handOver(t, 2)
		handOver(t, 3)
		h.Tick()
		call, p, requests := sent(t, h, 1)
		if p.Edge != "e1" || p.Boot == "" || p.Sequence != 1 || len(p.Batches) != 2 || requests != 5 {
			t.Fatalf("%+v of %d requests", p, requests)
		}
		handOver(t, 1)
		h.Tick()
		sent(t, h, 1) // the first is under way
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "204"}}, nil, nil)
		if n := metric(t, h, meter.SettledMetric); n != 2 {
			t.Errorf("%d batches are settled, want 2", n)
		}
		h.Tick()
		if _, next, requests := sent(t, h, 2); next.Sequence != 2 || next.Boot != p.Boot || requests != 1 {
			t.Errorf("%+v of %d requests", next, requests)
		}
	})
}

// Until it is known that a parcel was taken it is sent again, as it was.
func TestAParcelIsSentUntilItIsTaken(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		handOver(t, 2)
		h.Tick()
		_, first, _ := sent(t, h, 1)
		for n, answer := range [][][2]string{nil, {{":status", "503"}}, {{":status", "401"}}} {
			call, _, _ := sent(t, h, n+1)
			h.CallOnHttpCallResponse(call, answer, nil, nil)
			handOver(t, 1)
			for range meterRetryTicks {
				h.Tick()
				sent(t, h, n+1) // not yet
			}
			h.Tick()
			if _, again, requests := sent(t, h, n+2); again.Sequence != 1 || again.Boot != first.Boot || requests != 2 {
				t.Fatalf("%+v of %d requests", again, requests)
			}
		}
		if n := metric(t, h, "sluice_meter_requests_lost_total"); n != 0 {
			t.Errorf("%d requests are lost", n)
		}
	})
}

// What will never be taken is given up, and said to be lost.
func TestARefusedParcelIsGivenUp(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		handOver(t, 4)
		h.Tick()
		call, _, _ := sent(t, h, 1)
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "400"}}, nil, nil)
		handOver(t, 1)
		h.Tick()
		if _, p, requests := sent(t, h, 2); p.Sequence != 2 || requests != 1 {
			t.Errorf("%+v of %d requests", p, requests)
		}
		if lost, settled := metric(t, h, "sluice_meter_requests_lost_total"), metric(t, h, meter.SettledMetric); lost != 4 || settled != 1 {
			t.Errorf("%d requests lost, %d batches settled", lost, settled)
		}
	})
}
