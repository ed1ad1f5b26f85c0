package main

import (
	"testing"

	"sluice.dev/sluice/filters/limits/meter"
)

func TestUsageIsSentOneParcelAtATime(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		usageCounts.handOver(t, 2)
		usageCounts.handOver(t, 3)
		h.Tick()
		call, p, requests := usageCounts.sent(t, h, 1)
		if p.Edge != "e1" || p.Boot == "" || p.Sequence != 1 || len(p.Batches) != 2 || requests != 5 {
			t.Fatalf("%+v of %d requests", p, requests)
		}
		usageCounts.handOver(t, 1)
		h.Tick()
		usageCounts.sent(t, h, 1) // the first is under way
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "204"}}, nil, nil)
		if n := metric(t, h, meter.SettledMetric); n != 2 {
			t.Errorf("%d batches are settled, want 2", n)
		}
		h.Tick()
		if _, next, requests := usageCounts.sent(t, h, 2); next.Sequence != 2 || next.Boot != p.Boot || requests != 1 {
			t.Errorf("%+v of %d requests", next, requests)
		}
	})
}

// Until it is known that a parcel was taken it is sent again, as it was.
func TestAParcelIsSentUntilItIsTaken(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		usageCounts.handOver(t, 2)
		h.Tick()
		_, first, _ := usageCounts.sent(t, h, 1)
		for n, answer := range [][][2]string{nil, {{":status", "503"}}, {{":status", "401"}}} {
			call, _, _ := usageCounts.sent(t, h, n+1)
			h.CallOnHttpCallResponse(call, answer, nil, nil)
			usageCounts.handOver(t, 1)
			for range meterRetryTicks {
				h.Tick()
				usageCounts.sent(t, h, n+1) // not yet
			}
			h.Tick()
			if _, again, requests := usageCounts.sent(t, h, n+2); again.Sequence != 1 || again.Boot != first.Boot || requests != 2 {
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
		usageCounts.handOver(t, 4)
		h.Tick()
		call, _, _ := usageCounts.sent(t, h, 1)
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "400"}}, nil, nil)
		usageCounts.handOver(t, 1)
		h.Tick()
		if _, p, requests := usageCounts.sent(t, h, 2); p.Sequence != 2 || requests != 1 {
			t.Errorf("%+v of %d requests", p, requests)
		}
		if lost, settled := metric(t, h, "sluice_meter_requests_lost_total"), metric(t, h, meter.SettledMetric); lost != 4 || settled != 1 {
			t.Errorf("%d requests lost, %d batches settled", lost, settled)
		}
	})
}
