// Package main is the edge filter, the first filter of every listener: it lets
// requests pass, refuses, meters and sells them, as package authorize decides.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/wasmhost"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct {
	types.DefaultVMContext
	started bool
}

// heapRoom is how much room a worker's VM has for what requests leave behind, in bytes,
// before the collector runs: that of some hundred requests. It costs each worker 576 KiB.
const heapRoom = 384 << 10

// OnVMStart is called for each configuration that is pushed, though the VM is the same.
func (v *vm) OnVMStart(int) types.OnVMStartStatus {
	if !v.started {
		v.started = true
		wasmhost.GrowHeap(heapRoom)
	}
	return types.OnVMStartStatusOK
}

// NewPluginContext is called for each configuration that is pushed.
func (*vm) NewPluginContext(context uint32) types.PluginContext { return &plugin{context: context} }
