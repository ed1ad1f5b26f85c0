// Package main is the validate filter: on routes that ask for it, it holds the
// parameters and the JSON body of a request against what the document says
// (filters/schema), and answers what is not so with every bad field, before the
// product sees any of the request. It stands behind the edge filter: only callers
// who may call reach it.
//
// It needs allow_on_headers_stop_iteration: the headers wait for the body. What
// Envoy may hold of a body is the route's buffer limit; beyond it Envoy itself
// answers 413.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/schema"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called for each configuration that is pushed.
func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

// plugin is one configuration: the tables of routes.
type plugin struct {
	types.DefaultPluginContext
	set *schema.Set
}

// checker is that of the VM, which does one thing at a time.
var checker schema.Checker

// OnPluginStart reads the configuration.
func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	panicguard.Define("sluice_validate_crashes_total")
	raw, err := proxywasm.GetPluginConfiguration()
	if err == nil && len(raw) <= 2*schema.MaxSet {
		var ok bool
		if p.set, ok = schema.ParseSet(raw); ok {
			return types.OnPluginStartStatusOK
		}
	}
	proxywasm.LogCritical("validate: the configuration is not a set of tables")
	return types.OnPluginStartStatusFailed
}

// NewHttpContext is called for each request on a route that asks for checks.
func (p *plugin) NewHttpContext(context uint32) types.HttpContext {
	return &request{plugin: p, context: context}
}
