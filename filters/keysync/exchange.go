package main

import (
	"hash/fnv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/fleet"
)

// answerMillis is how long the answer to a report may take. One without counts
// is held back for a second until somebody has some.
const answerMillis = 3000

// exchange tells the control plane what this edge has counted and keeps what
// the others have, at every tick. An edge with nothing to tell has one request
// under way, which waits for news; one that becomes busy does not wait for it.
type exchange struct {
	part   fleet.Edge
	idle   int // requests under way that told nothing
	told   int // and those that told something
	failed bool
	edges  proxywasm.MetricGauge // sluice_fleet_edges: how many share limits; 0: the control plane does not answer
	shown  int64                 // what edges shows
}

// bootNumber tells starts of one edge apart.
func bootNumber(boot string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(boot))
	return h.Sum64()
}

// tick sends a report unless one is under way.
func (x *exchange) tick(r *reader) {
	report := x.part.Report(r.shared, wasmhost.Millis())
	underWay := &x.told
	if len(report.Entries) == 0 {
		underWay = &x.idle
	}
	if x.told > 0 || *underWay > 0 {
		return
	}
	headers := append(r.config.headers("POST", edgeapi.CountsPath), [2]string{"content-type", "application/octet-stream"})
	_, err := proxywasm.DispatchHttpCall(r.config.Cluster, headers, report.Append(nil), nil, answerMillis, func(headers, bodySize, _ int) {
		*underWay--
		x.receive(r, headers, bodySize)
	})
	if err != nil {
		x.fail("dispatch: " + err.Error())
		return
	}
	*underWay++
}

// receive takes an answer. Whatever goes wrong, the workers go on with what they
// know, and soon with a fair share. An agent that reaches no replica says how many
// edges there were.
func (x *exchange) receive(r *reader, headers, bodySize int) {
	body, err := proxywasm.GetHttpCallResponseBody(0, bodySize)
	if err != nil || bodySize == 0 {
		x.fail("no answer")
		return
	}
	answer, ok := fleet.ParseAnswer(body)
	if !ok {
		x.fail("the answer is not one")
		return
	}
	if answerStatus(headers) != 200 {
		x.part.Remember(r.shared, answer.Edges)
		x.fail("no replica answers")
		return
	}
	x.part.Hear(r.shared, answer, wasmhost.Millis())
	x.show(int64(answer.Edges))
	if x.failed {
		proxywasm.LogWarn("keysync: sharing limits with the other edges again")
		x.failed = false
	}
}

// show sets the gauge; the metric has no set, so the difference is added.
func (x *exchange) show(edges int64) {
	x.edges.Add(edges - x.shown)
	x.shown = edges
}

func (x *exchange) fail(why string) {
	x.show(0)
	if !x.failed {
		proxywasm.LogWarn("keysync: counts: " + why + "; limits are this edge's own until the control plane answers")
	}
	x.failed = true
}
