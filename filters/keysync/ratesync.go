package main

import (
	"hash/fnv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// reportTimeoutMillis is how long the answer to a report may take. One without counts
// is held back for a second until somebody has some.
const reportTimeoutMillis = 3000

// rateSync tells the control plane what this edge has counted and keeps what
// the others have, at every tick. An edge with nothing to tell has one request
// under way, which waits for news; one that becomes busy does not wait for it.
type rateSync struct {
	part        sharedlimit.Edge
	idleCalls   int // requests under way that told nothing
	reportCalls int // and those that told something
	failed      bool
	edges       proxywasm.MetricGauge // sluice_fleet_edges: how many share limits; 0: the control plane does not answer
	edgesSet    int64                 // what edges shows
}

// bootNumber tells starts of one edge apart.
func bootNumber(boot string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(boot))
	return h.Sum64()
}

// tick sends a report unless one is under way.
func (x *rateSync) tick(r *reader) {
	report := x.part.Report(r.shared, wasmhost.Millis())
	underWay := &x.reportCalls
	if report.Idle() {
		underWay = &x.idleCalls
	}
	if x.reportCalls > 0 || *underWay > 0 {
		return
	}
	headers := append(r.config.headers("POST", edgeapi.CountsPath), [2]string{"content-type", "application/octet-stream"})
	_, err := proxywasm.DispatchHttpCall(r.config.Cluster, headers, report.Append(nil), nil, reportTimeoutMillis, func(headers, bodySize, _ int) {
		*underWay--
		x.receive(r, int64(report.Told), headers, bodySize)
	})
	if err != nil {
		x.fail("dispatch: " + err.Error())
		return
	}
	*underWay++
}

// receive takes the answer to a report made at told. Whatever goes wrong, the workers go on with what they
// know, and soon with a fair share. An agent that reaches no replica says how many
// edges there were.
func (x *rateSync) receive(r *reader, told int64, headers, bodySize int) {
	body, err := proxywasm.GetHttpCallResponseBody(0, bodySize)
	if err != nil || bodySize == 0 {
		x.fail("no answer")
		return
	}
	answer, ok := sharedlimit.ParseAnswer(body)
	if !ok {
		x.fail("the answer is not one")
		return
	}
	if answerStatus(headers) != 200 {
		x.part.SetKnownEdges(r.shared, answer.Edges)
		x.fail("no replica answers")
		return
	}
	x.part.ApplyAnswer(r.shared, answer, told, wasmhost.Millis())
	x.setEdges(int64(answer.Edges))
	if x.failed {
		proxywasm.LogWarn("keysync: sharing limits with the other edges again")
		x.failed = false
	}
}

// setEdges sets the gauge; the metric has no set, so the difference is added.
func (x *rateSync) setEdges(edges int64) {
	x.edges.Add(edges - x.edgesSet)
	x.edgesSet = edges
}

func (x *rateSync) fail(why string) {
	x.setEdges(0)
	if !x.failed {
		proxywasm.LogWarn("keysync: counts: " + why + "; limits are this edge's own until the control plane answers")
	}
	x.failed = true
}
