package resources

import (
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/policy"
)

// Names of the HTTP filters, which are also the names of their resources.
const (
	EdgeFilter     = edgeapi.EdgeFilter
	ChatCapsFilter = "sluice.chatcaps"
	ValidateFilter = "sluice.validate"
)

// The types of filters' configurations.
const (
	wasmType  = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"
	faultType = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"
)

// EdgeFilterConfig carries policy p to edges. Its vm_id is that of the key feed's
// program: the two share data by it.
func EdgeFilterConfig(p *policy.Policy) *core.TypedExtensionConfig {
	return extension(EdgeFilter, &wasmfilter.Wasm{Config: plugin("edge", edgeapi.VMID, p.Encode())})
}

// chatCapsFilter has a VM of its own, so that a crash while it reads a body
// does not take authentication down with it.
// It needs the address of the documentation for its errors.
func chatCapsFilter(docsBase string) *core.TypedExtensionConfig {
	c := plugin("chatcaps", "sluice-chatcaps", []byte(docsBase))
	// It decides on the body, so it holds the headers back until it has it.
	c.AllowOnHeadersStopIteration = wrapperspb.Bool(true)
	return extension(ChatCapsFilter, &wasmfilter.Wasm{Config: c})
}

func plugin(program, vmID string, configuration []byte) *wasm.PluginConfig {
	return &wasm.PluginConfig{
		Name:          program,
		RootId:        program,
		Configuration: pack(wrapperspb.Bytes(configuration)),
		Vm: &wasm.PluginConfig_VmConfig{VmConfig: &wasm.VmConfig{
			VmId:    vmID,
			Runtime: "envoy.wasm.runtime.v8",
			Code: &core.AsyncDataSource{Specifier: &core.AsyncDataSource_Local{Local: &core.DataSource{
				// Relative to the folder in which the edge runs Envoy.
				Specifier: &core.DataSource_Filename{Filename: "wasm/" + program + ".wasm"},
			}}},
		}},
		// A crash costs the request that caused it; the next one gets a new VM.
		FailurePolicy: wasm.FailurePolicy_FAIL_RELOAD,
		ReloadConfig: &wasm.ReloadConfig{Backoff: &core.BackoffStrategy{
			BaseInterval: durationpb.New(100 * time.Millisecond),
			MaxInterval:  durationpb.New(time.Second),
		}},
	}
}
