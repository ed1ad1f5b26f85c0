package main

import (
	"runtime"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/counter"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/filters/policy"
)

// plugin is one configuration in one worker. Requests that began under an older
// one end under it.
type plugin struct {
	types.DefaultPluginContext
	context uint32 // Envoy's number of it
	policy  *policy.Policy
	env     env
	callers signer
	routes  []uint32 // numbers for metering, by Index
	heap    proxywasm.MetricGauge
}

// tickPeriod is how often a worker hands over what it has counted, and says how
// large its heap is, in milliseconds.
const tickPeriod = 500

// OnPluginStart parses the policy. A policy that does not parse fails the push:
// Envoy reports it to the control plane and keeps the one before.
func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	raw, err := proxywasm.GetPluginConfiguration()
	if err != nil {
		proxywasm.LogCritical("edge: no policy: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	if p.policy = policy.Parse(raw); p.policy == nil {
		proxywasm.LogCritical("edge: the policy does not parse")
		return types.OnPluginStartStatusFailed
	}
	p.env.callers, p.env.requests = &p.callers, new(counter.Counter)
	p.routes = worker.numberRoutes(p.policy)
	p.env.revision = wasmhost.DefineRevision()
	p.heap = proxywasm.DefineGaugeMetric("sluice_edge_heap_bytes")
	panicguard.Define("sluice_edge_crashes_total")
	if err := proxywasm.SetTickPeriodMilliSeconds(tickPeriod); err != nil {
		proxywasm.LogCritical("edge: no ticks: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

// OnTick sends pending settlements, reads how many edges share limits, hands over
// what was counted, and shows the heap of this worker. The metric has no set, so the
// difference is added; workers have gauges of one name, so it is their sum.
func (p *plugin) OnTick() {
	p.sendPending()
	p.env.fleet = p.env.Fleet()
	streams.tick(p, time.Now())
	worker.flush(wasmhost.Now())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	reportedHeap.set(p.heap, int64(m.HeapInuse))
}

// OnPluginDone hands over what was counted before a policy goes.
func (p *plugin) OnPluginDone() bool {
	worker.flush(wasmhost.Now())
	return true
}

// reportedHeap is what this worker's VM has added to the gauge so far.
var reportedHeap gauge

type gauge int64

func (g *gauge) set(m proxywasm.MetricGauge, now int64) {
	m.Add(now - int64(*g))
	*g = gauge(now)
}

// NewHttpContext is called for each request.
func (p *plugin) NewHttpContext(context uint32) types.HttpContext {
	return &request{plugin: p, context: context}
}

// env is what package authorize needs of the host.
type env struct {
	wasmhost.Shared
	// callers is the plugin's: a signer in here would be copied with each call of a
	// method of Shared, and the compiler would not come to an end.
	callers  *signer
	requests *counter.Counter // as large as the signer
	revision wasmhost.Revision
	records  keytable.Memo
	tokens   token.Table
	keys     apikey.Memo
	peers    clientcert.Memo
	ready    bool // the table was loaded once, which does not change
	fleet    sharedlimit.State
	shares   shares
	millis   int64 // when the request at hand began, in unix milliseconds
}

// begin notes when a request begins and returns that in unix seconds.
func (e *env) begin(at time.Time) int64 {
	e.millis = at.UnixMilli()
	return e.millis / 1000
}

// Record finds the record with tag t.
func (e *env) Record(t keytable.Tag) (keytable.Record, bool) {
	return e.records.Find(e.Shared, t, e.revision.Now(), e.millis/1000)
}

// Take counts a request in the window of id, as one of the fleet's edges.
func (e *env) Take(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result {
	if l.Strict {
		return e.takeStrict(k, id, l, now)
	}
	return wasmhost.Take(e.requests, k, id, l, e.fleet.Fleet(e.millis), now)
}

// Look is what Take would return; it counts nothing.
func (e *env) Look(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result {
	return wasmhost.Look(k, id, l, e.fleet.Fleet(e.millis), now)
}

// GiveBack takes back what has just been counted in the window of id.
func (e *env) GiveBack(k ratelimit.Kind, id ratelimit.ID, now int64) {
	wasmhost.GiveBack(e.requests, k, id, now)
}

// Tokens remembers tokens for as long as this configuration is in force.
func (e *env) Tokens() *token.Table { return &e.tokens }

// Keys remembers keys for as long as this configuration is in force.
func (e *env) Keys() *apikey.Memo { return &e.keys }

// Certificates remembers certificates for as long as this configuration is in force.
func (e *env) Certificates() *clientcert.Memo { return &e.peers }

// Peer is what Envoy says of the client's certificate.
func (*env) Peer() string { return wasmhost.Peer() }

// Ready reports whether the table has been loaded once.
func (e *env) Ready() bool {
	e.ready = e.ready || e.Shared.Ready()
	return e.ready
}

// ClientAddress is the client's address with its port.
func (*env) ClientAddress() string { return wasmhost.ClientAddress() }

// Authorization is the request's Authorization header.
func (*env) Authorization() string { return wasmhost.Authorization() }

// Header is another header of the request.
func (*env) Header(name string) string { return wasmhost.Header(name) }
