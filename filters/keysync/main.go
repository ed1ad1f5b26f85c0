// Package main is keysync, a singleton service of Envoy that keeps the records in
// shared data, where the edge filters look, the same as the control plane's table.
// It asks for pages over Envoy's own cluster, one at a time, and holds no state of
// its own: where it is stands in shared data beside the records.
//
// It also exchanges what the edges of the fleet have counted (ratesync.go), sends the usage
// that workers have counted (usage.go), and hands the agent their counts for metrics
// (traffic.go).
package main

import (
	"encoding/json"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called once: the service is a singleton.
func (*vm) NewPluginContext(uint32) types.PluginContext { return &reader{} }

// Timing: how long the feed may hold an answer back, how long that answer may
// take, and how soon after a failure the next try is.
const (
	waitSeconds   = 25
	timeoutMillis = 35_000
	retryMillis   = 100
)

// config is the service's configuration in the bootstrap.
type config struct {
	Cluster string `json:"cluster"` // Envoy cluster of the control plane
	Edge    string `json:"edge"`    // name of this edge, for the control plane's list
	Boot    string `json:"boot"`    // tells two starts of this edge apart
	Token   string `json:"token"`   // bearer token for the feed; empty: none
}

type reader struct {
	types.DefaultPluginContext
	config     config
	shared     wasmhost.Shared
	revision   wasmhost.Revision
	usage      usageSender
	traffic    trafficSender
	requesting bool // a request is under way
	failed     bool // the last one failed, and was logged
	rateSync   rateSync
}

// OnPluginStart begins to read.
func (r *reader) OnPluginStart(int) types.OnPluginStartStatus {
	raw, err := proxywasm.GetPluginConfiguration()
	if err == nil {
		err = json.Unmarshal(raw, &r.config)
	}
	if err != nil || r.config.Cluster == "" {
		proxywasm.LogCritical("keysync: the configuration names no cluster")
		return types.OnPluginStartStatusFailed
	}
	r.rateSync.part.Boot = bootNumber(r.config.Boot)
	r.revision = wasmhost.DefineRevision()
	r.rateSync.edges = proxywasm.DefineGaugeMetric("sluice_fleet_edges")
	if err := r.usage.start(); err != nil {
		proxywasm.LogCritical("keysync: no queue for usage: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	if err := r.traffic.start(); err != nil {
		proxywasm.LogCritical("keysync: no queue for traffic: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	if err := proxywasm.SetTickPeriodMilliSeconds(retryMillis); err != nil {
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

// OnTick starts the first request, and the next one after a failure, passes
// usage on, and exchanges counts.
func (r *reader) OnTick() {
	r.usage.tick(&r.config)
	r.traffic.tick(&r.config)
	if !r.requesting {
		r.requestPage()
	}
	r.rateSync.tick(r)
}

// headers are those of a request to the control plane.
func (c *config) headers(method, path string) [][2]string {
	list := [][2]string{
		{":method", method}, {":scheme", "http"}, {":authority", c.Cluster}, {":path", path}, {edgeapi.EdgeHeader, c.Edge},
	}
	if c.Token != "" {
		list = append(list, [2]string{"authorization", "Bearer " + c.Token})
	}
	return list
}

func (r *reader) requestPage() {
	headers := r.config.headers("GET", edgeapi.RecordsPath+"?"+r.shared.State().Query(waitSeconds))
	_, err := proxywasm.DispatchHttpCall(r.config.Cluster, headers, nil, nil, timeoutMillis, r.receive)
	if err != nil {
		r.fail("dispatch: " + err.Error())
		return
	}
	r.requesting = true
}

// receive puts a page into shared data and asks for the next. Whatever goes
// wrong, the records stay as they are, and the next tick asks again.
func (r *reader) receive(_, bodySize, _ int) {
	r.requesting = false
	body, err := proxywasm.GetHttpCallResponseBody(0, bodySize)
	if err != nil || bodySize == 0 {
		r.fail("no answer")
		return
	}
	page, ok := keytable.ParsePage(body)
	if !ok {
		r.fail("the answer is not a page")
		return
	}
	before := r.shared.State()
	after := before.Apply(page, r.shared)
	r.shared.SetState(after)
	r.revision.Move()
	if after.Ready && !before.Ready {
		proxywasm.LogWarn("keysync: all records loaded")
	}
	if r.failed {
		proxywasm.LogWarn("keysync: reading again")
		r.failed = false
	}
	r.requestPage()
}

func (r *reader) fail(why string) {
	if !r.failed {
		proxywasm.LogWarn("keysync: " + why + "; serving from the records at hand")
	}
	r.failed = true
}
