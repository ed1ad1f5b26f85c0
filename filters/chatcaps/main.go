// Package main is the chatcaps filter: it stands on the chat route only and puts
// the capped body (filters/caps) in place of what the client sent, before the
// runtime or the provider sees any of the request.
//
// It needs allow_on_headers_stop_iteration: the headers wait for the body. What
// Envoy may hold of a body is the route's buffer limit; beyond it Envoy itself
// answers 413.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/panicguard"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called for each configuration that is pushed.
func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

// plugin is one configuration: the public address of the documentation, as
// text, which may be empty.
type plugin struct {
	types.DefaultPluginContext
	docs string
}

// maxDocs bounds the configuration.
const maxDocs = 2048

// OnPluginStart reads the configuration.
func (p *plugin) OnPluginStart(size int) types.OnPluginStartStatus {
	panicguard.Define("sluice_chatcaps_crashes_total")
	if size == 0 {
		return types.OnPluginStartStatusOK
	}
	raw, err := proxywasm.GetPluginConfiguration()
	if err != nil || len(raw) > maxDocs {
		proxywasm.LogCritical("chatcaps: the configuration is not an address")
		return types.OnPluginStartStatusFailed
	}
	p.docs = string(raw)
	return types.OnPluginStartStatusOK
}

// NewHttpContext is called for each request on the chat route.
func (p *plugin) NewHttpContext(context uint32) types.HttpContext {
	return &request{plugin: p, context: context}
}
