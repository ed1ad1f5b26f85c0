// Package main is the cache filter: on routes that ask for it, it keeps answers of the
// product and gives them again (filters/httpcache). It is the last before the router:
// whoever gets an answer has shown a good key, has the scopes and is within its limits,
// and the filters before it put the present request's headers on the answer.
//
// Answers are in Envoy's shared data, so that all workers of an edge have the same, and
// in a VM of their own: the edge filter never meets them.
package main

import (
	"encoding/binary"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/httpcache"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called for each configuration that is pushed.
func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

// plugin is one configuration: the rules of routes.
type plugin struct {
	types.DefaultPluginContext
	rules map[string]*rule
	bytes proxywasm.MetricGauge
}

// rule is that of one route.
type rule struct {
	*httpcache.Rule
	since                      uint64 // unix milliseconds: what is older was kept under another rule
	hits, misses, bypassed, in proxywasm.MetricCounter
}

// OnPluginStart reads the configuration.
func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	panicguard.Define("sluice_cache_crashes_total")
	p.bytes = proxywasm.DefineGaugeMetric(httpcache.BytesMetric)
	raw, err := proxywasm.GetPluginConfiguration()
	if err != nil {
		proxywasm.LogCritical("cache: no configuration: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	rules, ok := httpcache.Parse(raw)
	if !ok {
		proxywasm.LogCritical("cache: the configuration is not a set of rules")
		return types.OnPluginStartStatusFailed
	}
	p.rules = make(map[string]*rule, len(rules))
	now := uint64(time.Now().UnixMilli())
	for key, r := range rules {
		counter := func(result string) proxywasm.MetricCounter {
			return proxywasm.DefineCounterMetric(httpcache.CountersPrefix + result + "." + r.Route)
		}
		p.rules[key] = &rule{Rule: r, since: begin(r, now), hits: counter("hit"), misses: counter("miss"), bypassed: counter("bypass"), in: counter("stored")}
	}
	return types.OnPluginStartStatusOK
}

// begin is since when, in unix milliseconds, a route has had its rule: a rule that comes
// back, as when somebody takes a purge out of a document, does not bring back what was
// kept before it went.
func begin(r *httpcache.Rule, now uint64) uint64 {
	key := "s" + r.Key
	if b, _ := (data{}).Get(key); len(b) == httpcache.DigestSize+8 && httpcache.Digest(b[:httpcache.DigestSize]) == r.Digest {
		return binary.LittleEndian.Uint64(b[httpcache.DigestSize:])
	}
	(data{}).Set(key, binary.LittleEndian.AppendUint64(append([]byte(nil), r.Digest[:]...), now), 0)
	return now
}

// NewHttpContext is called for each request on a route that asks for the cache.
func (p *plugin) NewHttpContext(context uint32) types.HttpContext {
	return &request{plugin: p, context: context}
}

// data is Envoy's shared data; it implements httpcache.Data.
type data struct{}

// Get reads a value.
func (data) Get(key string) ([]byte, uint32) {
	b, version, err := proxywasm.GetSharedData(key)
	if err != nil {
		return nil, 0
	}
	return b, version
}

// Set writes a value. Envoy takes version 0 for any; the SDK's test host compares with it.
func (data) Set(key string, value []byte, version uint32) bool {
	if proxywasm.SetSharedData(key, value, version) == nil {
		return true
	}
	if version != 0 {
		return false
	}
	_, now, _ := proxywasm.GetSharedData(key)
	return proxywasm.SetSharedData(key, value, now) == nil
}
