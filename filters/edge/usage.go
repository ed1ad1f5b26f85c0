package main

import (
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
)

// worker is what this worker's VM has counted and not yet handed over. It
// outlives policies: a request may begin under one and end under the next.
var worker = usageLedger{table: meter.NewTable(), traffic: trafficLedger{table: traffic.NewTable()}}

// usage is what is metered of one request. Bodies are counted as they pass, so
// that the status is the only thing that a request must ask the host for.
type usage struct {
	key     meter.Key
	began   time.Time // zero: the filter never saw the request
	in, out uint64
	status  int
	refused bool
	rpc     bool // it is a call by gRPC, whose status is yet to come

	method   uint8         // see traffic.MethodNumber
	reason   decision.Code // of a refusal by the filter, or one in the shadow: see traffic.Would; empty: none
	upstream time.Duration // until the product's answer began
}

// begin notes whose request it is.
func (u *usage) begin(p *plugin, v *authorize.Verdict, at time.Time) {
	u.began = at
	u.rpc = isRPC(v.Route == nil || v.Route.MayBeRPC())
	if v.Route != nil {
		u.key.Route = p.routes[v.Route.Index()]
		u.method = methodOf(v.Route)
	}
	if !v.Known {
		return
	}
	u.key.Account = v.Caller.Account
	if v.Token == "" {
		u.key.Key = v.Caller.ID
		worker.noteKeyUse(&p.env, &v.Caller, at.Unix())
	}
}

// setEdgeStatus notes that the edge itself answers, with status.
func (u *usage) setEdgeStatus(status int) { u.status, u.refused = status, true }

// readStatus reads the status of an answer that is not the edge's, and when it came.
func (u *usage) readStatus() {
	if !u.refused {
		u.status = wasmhost.Status()
		u.upstream = time.Since(u.began)
	}
}

// count counts the request, which is over.
func (u *usage) count() {
	now := time.Now()
	if u.began.IsZero() {
		u.countUnseen(now.Unix())
		return
	}
	u.key.Class = meter.Class(u.status)
	took := now.Sub(u.began)
	worker.countRequest(u.key, meter.Request{Refused: u.refused, In: u.in, Out: u.out, Took: took}, now.Unix())
	u.countTraffic(took, now.Unix())
}

// usageLedger counts requests until they are handed over to keysync, which sends them
// on.
type usageLedger struct {
	table   *meter.Table
	names   meter.Names
	uses    meter.Uses
	begun   proxywasm.MetricCounter // batches begun
	triedAt int64                   // second of the last attempt to hand over
	traffic trafficLedger
}

// numberRoutes gives the routes of p their numbers.
func (l *usageLedger) numberRoutes(p *policy.Policy) []uint32 {
	l.begun = proxywasm.DefineCounterMetric(meter.BegunMetric)
	numbers := make([]uint32, len(p.Routes))
	for i, r := range p.Routes {
		numbers[i] = l.names.Number(meter.Route{Name: r.Name, Product: r.Product})
	}
	return numbers
}

// noteKeyUse notes the use of a key by the client of the present request.
func (l *usageLedger) noteKeyUse(e *env, key *keytable.Record, now int64) {
	if l.uses.Due(key.ID, now) {
		l.uses.Note(meter.Use{Key: key.ID, At: now, Address: e.CallerAddress(key, "")})
	}
}

// countRequest counts a request. The first of a batch is told to whoever waits for the
// edge to have nothing left to send; a full table does not wait for the tick.
func (l *usageLedger) countRequest(k meter.Key, r meter.Request, now int64) {
	if l.table.Empty() {
		l.begun.Increment(1)
	}
	if l.table.Add(k, r) && l.triedAt != now {
		l.flush(now)
	}
}

// countPart counts a part of an open connection, as countRequest does a request.
func (l *usageLedger) countPart(k meter.Key, t traffic.Key, p meter.Part, now int64) {
	if l.table.Empty() {
		l.begun.Increment(1)
	}
	full := l.table.AddPart(k, p)
	if l.traffic.table.AddPart(t, p); full && l.triedAt != now {
		l.flush(now)
	}
}

// flush hands over what was counted. If keysync does not take it, it stays here,
// where it takes no more memory however much is added.
func (l *usageLedger) flush(now int64) {
	l.traffic.flush(&l.names, now)
	if l.table.Empty() {
		return
	}
	l.triedAt = now
	queue, ok := wasmhost.Usage.Find(now)
	if !ok {
		return
	}
	if err := proxywasm.EnqueueSharedQueue(queue, meter.Append(nil, l.table, &l.names, &l.uses, now)); err != nil {
		proxywasm.LogWarn("edge: usage not handed over: " + err.Error())
		return
	}
	l.table.Reset()
	l.uses.Reset()
}
