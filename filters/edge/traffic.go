package main

import (
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
)

// trafficLedger counts requests for metrics until they are handed over to keysync, which
// gives them to the edge's agent.
type trafficLedger struct {
	table   *traffic.Table
	reasons traffic.Reasons
	triedAt int64 // second of the last attempt that failed
}

// add counts a request. A full table does not wait for the tick.
func (l *trafficLedger) add(k traffic.Key, r traffic.Request, now int64) {
	if l.table.Add(k, r) && l.triedAt != now {
		l.flush(&worker.names, now)
	}
}

// flush hands over what was counted. If keysync does not take it, it stays here, where it
// takes no more memory however much is added.
func (l *trafficLedger) flush(names *meter.Names, now int64) {
	if l.table.Empty() {
		return
	}
	queue, ok := wasmhost.Traffic.Find(now)
	if !ok {
		l.triedAt = now
		return
	}
	if err := proxywasm.EnqueueSharedQueue(queue, traffic.Append(nil, l.table, names, &l.reasons)); err != nil {
		l.triedAt = now
		return
	}
	l.table.Reset()
}

// methodOf is the number of the request's method. Most routes are for one. Of the others the host
// is asked, which takes four times as many instructions as all else that is counted here.
func methodOf(r *policy.Route) uint8 {
	if m := r.Method(); m != "" {
		return traffic.MethodNumber(m)
	}
	return traffic.MethodNumber(wasmhost.Header(":method"))
}

// wanted reports whether an answer that failed, of which Envoy says how it came about, is what
// its route leads to: the product's, or the one in the route itself. Any other was made behind
// this filter: by another one, or by Envoy because the product is down or slow.
func wanted(details string) bool { return details == "via_upstream" || details == "direct_response" }

// countTraffic counts a request that the filter has seen.
func (u *usage) countTraffic(took time.Duration, now int64) {
	r := traffic.Request{In: u.in, Out: u.out, Took: took}
	reason := u.reason
	switch {
	case u.refused:
	case u.status >= 400 && !wanted(wasmhost.ResponseDetails()):
		reason = decision.Code(traffic.AndThen(string(u.reason), string(decision.OfReply(u.status))))
	case u.status > 0:
		r.Upstream = u.upstream
	}
	worker.traffic.add(u.trafficKey(reason), r, now)
}

// trafficKey is what a request is counted under for metrics; reason is empty for one that
// was served.
func (u *usage) trafficKey(reason decision.Code) traffic.Key {
	return traffic.Key{
		Route: u.key.Route, Method: u.method, Class: u.key.Class, Reason: worker.traffic.reasons.Number(string(reason)), Passed: !u.refused,
	}
}

// countUnseen counts a request that Envoy has answered before any filter: it belongs to
// no route.
func (u *usage) countUnseen(now int64) {
	status, took := wasmhost.Unseen()
	reason := decision.OfReply(status)
	if status == 403 && wasmhost.ResponseDetails() == "upgrade_failed" {
		reason = decision.UpgradeRefused
	}
	worker.traffic.add(traffic.Key{
		Class: meter.Class(status), Reason: worker.traffic.reasons.Number(string(reason)),
	}, traffic.Request{In: u.in, Out: u.out, Took: took}, now)
}
