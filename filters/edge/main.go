// Package main is the edge filter, the first filter of every listener: it lets
// requests pass, refuses, meters and sells them, as package authorize decides.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called for each configuration that is pushed.
func (*vm) NewPluginContext(context uint32) types.PluginContext { return &plugin{context: context} }
