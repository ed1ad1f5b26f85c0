package relay

import (
	"io"
	"net/http"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sluice.dev/sluice/envoy/trafficmetrics"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
)

// takeTraffic adds what Envoy has counted for metrics: 204, or 400 for what is no parcel.
func takeTraffic(t *trafficmetrics.Totals) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		raw, err := io.ReadAll(http.MaxBytesReader(w, q.Body, traffic.MaxParcel))
		if err != nil || !t.Take(raw) {
			http.Error(w, "not a parcel", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// routesInForce tells which routes Envoy has accepted, by the edge filter's policy, and the
// method of each that has but one.
type routesInForce struct {
	lastGood *lastGood

	mu      sync.Mutex
	version string
	routes  map[meter.Route]string
}

// present returns them; nil: none are known. The result must not be changed.
func (r *routesInForce) present() map[meter.Route]string {
	config, version := r.lastGood.named(resource.ExtensionConfigType, edgeapi.EdgeFilter)
	r.mu.Lock()
	defer r.mu.Unlock()
	if config == nil || version == r.version {
		return r.routes
	}
	var extension core.TypedExtensionConfig
	var filter wasmfilter.Wasm
	var raw wrapperspb.BytesValue
	if config.UnmarshalTo(&extension) != nil || extension.GetTypedConfig().UnmarshalTo(&filter) != nil ||
		filter.GetConfig().GetConfiguration().UnmarshalTo(&raw) != nil {
		return r.routes
	}
	p := policy.Parse(raw.GetValue())
	if p == nil {
		return r.routes
	}
	r.version, r.routes = version, make(map[meter.Route]string, len(p.Routes))
	for i := range p.Routes {
		r.routes[meter.Route{Name: p.Routes[i].Name, Product: p.Routes[i].Product}] = p.Routes[i].Method()
	}
	return r.routes
}
