package main

import (
	"testing"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/counter"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// reports returns the last of the n reports that were sent.
func reports(t *testing.T, h *host, n int) (id uint32, last sharedlimit.Report) {
	t.Helper()
	c := h.to(t, edgeapi.CountsPath, n)[n-1]
	last, ok := sharedlimit.ParseReport(c.body)
	if !ok || c.headers[":method"] != "POST" || c.headers[edgeapi.EdgeHeader] != "e1" || c.headers["authorization"] != "Bearer t0" {
		t.Fatalf("%v %x", c.headers, c.body)
	}
	return c.id, last
}

func TestCountsAreExchanged(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		shared, worker, id := wasmhost.Shared{}, new(counter.Counter), ratelimit.AccountID(7, 1)
		h.Tick()
		call, r := reports(t, h, 1)
		if len(r.Entries) != 0 || r.Told == 0 {
			t.Fatalf("%+v", r)
		}
		h.answer(call, sharedlimit.Answer{Edges: 2}.Append(nil))
		if st := shared.Fleet(); st.Edges != 2 || st.Heard == 0 {
			t.Fatalf("%+v", st)
		}
		if v, err := h.GetGaugeMetric("sluice_fleet_edges"); err != nil || v != 2 {
			t.Fatal(v, err)
		}
		now := int64(r.Told / 1000)
		f := ratelimit.Fleet{Edges: 2}
		for range 3 { // past half of a fair share
			wasmhost.Take(worker, ratelimit.Accounts, id, ratelimit.Limit{PerMinute: 10}, f, now)
		}
		h.Tick()
		call, r = reports(t, h, 2)
		if len(r.Entries) != 1 || r.Entries[0].ID != id || r.Entries[0].At(now) != 3 {
			t.Fatalf("%+v", r)
		}
		others := ratelimit.Others{Newest: now}
		others.Slots[now%60] = 6
		h.answer(call, sharedlimit.Answer{Edges: 2, Entries: []sharedlimit.Entry{{ID: id, Others: others}}}.Append(nil))
		f.Millis = uint32(r.Told)
		if got := wasmhost.Take(worker, ratelimit.Accounts, id, ratelimit.Limit{PerMinute: 10}, f, now); !got.OK || got.Remaining != 0 {
			t.Fatalf("3 here and 6 elsewhere: %+v", got)
		}
		if got := wasmhost.Take(worker, ratelimit.Accounts, id, ratelimit.Limit{PerMinute: 10}, f, now); got.OK || got.RetryAfter < 1 {
			t.Fatalf("one more: %+v", got)
		}
	})
}

// While its agent reaches no replica, an edge that has just started hears from it
// how many edges there were: it is cut off, and not alone.
func TestTheAgentRemembersTheOthers(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		call, r := reports(t, h, 1)
		h.CallOnHttpCallResponse(call, [][2]string{{":status", "503"}}, nil, sharedlimit.Answer{Edges: 3}.Append(nil))
		h.note()
		if st := (wasmhost.Shared{}).Fleet(); st.Edges != 3 || !st.Fleet(int64(r.Told)).Cut {
			t.Fatalf("%+v", st)
		}
		h.Tick()
		call, _ = reports(t, h, 2)
		h.answer(call, sharedlimit.Answer{Edges: 2}.Append(nil))
		if st := (wasmhost.Shared{}).Fleet(); st.Edges != 2 || st.Fleet(st.Heard).Cut {
			t.Fatalf("%+v", st)
		}
	})
}

// An edge that has something to tell does not wait for the answer to a report
// that told nothing, and sends one report at a time.
func TestReportsUnderWay(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		n := 1
		for h.Tick(); ; h.Tick() { // until it has a share, it does not wait for news
			call, r := reports(t, h, n)
			if r.Idle() {
				break
			}
			h.answer(call, sharedlimit.Answer{Edges: 0, Members: sharedlimit.Members{Edges: 1, Settled: true}}.Append(nil))
			n++
		}
		for range 3 {
			h.Tick()
		}
		_, r := reports(t, h, n)
		wasmhost.Take(new(counter.Counter), ratelimit.Accounts, ratelimit.AccountID(1, 0), ratelimit.Limit{PerMinute: 1}, ratelimit.Fleet{Edges: 2}, int64(r.Told/1000))
		for range 3 {
			h.Tick()
		}
		call, _ := reports(t, h, n+1)
		h.answer(call, []byte("not an answer"))
		if (wasmhost.Shared{}).Fleet().Edges != 0 {
			t.Fatal("a bad answer was taken")
		}
		if v, err := h.GetGaugeMetric("sluice_fleet_edges"); err != nil || v != 0 {
			t.Fatal(v, err)
		}
		h.Tick()
		reports(t, h, n+2)
	})
}
