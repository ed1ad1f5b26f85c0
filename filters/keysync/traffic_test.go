package main

import (
	"testing"

	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
)

// Counts go to the agent whether or not a control plane takes usage, one parcel at a time.
func TestTrafficIsHandedOverOneParcelAtATime(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		usageCounts.handOver(t, 1) // usage, which nobody answers
		trafficCounts.handOver(t, 2)
		trafficCounts.handOver(t, 3)
		h.Tick()
		call, p, requests := trafficCounts.sent(t, h, 1)
		if p.Boot == "" || p.Sequence != 1 || requests != 5 {
			t.Fatalf("%+v of %d requests", p, requests)
		}
		trafficCounts.handOver(t, 1)
		h.Tick()
		trafficCounts.sent(t, h, 1) // the first is under way
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "204"}}, nil, nil)
		h.Tick()
		if _, next, requests := trafficCounts.sent(t, h, 2); next.Sequence != 2 || next.Boot != p.Boot || requests != 1 {
			t.Errorf("%+v of %d requests", next, requests)
		}
	})
}

// A parcel is sent again as it was until the agent has it, and given up when it never will.
func TestTrafficIsSentAgain(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		trafficCounts.handOver(t, 2)
		h.Tick()
		call, _, _ := trafficCounts.sent(t, h, 1)
		h.CallOnHttpCallResponse(call, nil, nil, nil)
		trafficCounts.handOver(t, 1)
		for range meterRetryTicks {
			h.Tick()
			trafficCounts.sent(t, h, 1) // not yet
		}
		h.Tick()
		call, again, requests := trafficCounts.sent(t, h, 2)
		if again.Sequence != 1 || requests != 2 {
			t.Fatalf("%+v of %d requests", again, requests)
		}
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "404"}}, nil, nil)
		h.Tick()
		if _, next, requests := trafficCounts.sent(t, h, 3); next.Sequence != 2 || requests != 1 {
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
		most := trafficWaitingBytes/len(raw) + 1
		for n := range most + 5 {
			trafficCounts.enqueue(t, raw)
			if n%50 == 0 {
				h.Tick()
			}
		}
		h.Tick()
		_, p, _ := trafficCounts.sent(t, h, 1)
		if len(p.Append(nil)) > traffic.MaxParcel || metric(t, h, "sluice_traffic_batches_lost_total") == 0 {
			t.Errorf("a parcel of %d bytes, %d batches are lost", len(p.Batches), metric(t, h, "sluice_traffic_batches_lost_total"))
		}
	})
}
