package relay

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sluice.dev/sluice/envoy/trafficmetrics"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
)

func TestWhatIsCountedIsTaken(t *testing.T) {
	t.Parallel()
	h := takeTraffic(trafficmetrics.New(time.Now, func() map[meter.Route]string { return nil }))
	for what, c := range map[string]struct {
		body   []byte
		status int
	}{
		"a parcel":  {traffic.Parcel{Boot: "b", Sequence: 1}.Append(nil), http.StatusNoContent},
		"none":      {[]byte("nonsense"), http.StatusBadRequest},
		"too large": {make([]byte, traffic.MaxParcel+1), http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		h(w, httptest.NewRequest(http.MethodPost, edgeapi.TrafficPath, io.NopCloser(bytes.NewReader(c.body))))
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d", what, w.Code, c.status)
		}
	}
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The routes in force are those of the policy that Envoy accepted last.
func TestRoutesInForce(t *testing.T) {
	t.Parallel()
	b := &lastGood{types: map[string]resources{}, changed: make(chan struct{}, 1)}
	r := &routesInForce{lastGood: b}
	if r.present() != nil {
		t.Error("there are routes before there is a policy")
	}
	accept := func(version string, config proto.Message) {
		b.apply(resource.ExtensionConfigType, &discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{
			{Name: edgeapi.EdgeFilter, Version: version, Resource: packed(t, config)},
		}}, false, nil)
	}
	filter := func(routes ...policy.Route) proto.Message {
		p := &policy.Policy{DocsBase: "http://gw", Anonymous: 1, Classes: []string{"default"}, Routes: routes}
		return &core.TypedExtensionConfig{Name: edgeapi.EdgeFilter, TypedConfig: packed(t, &wasmfilter.Wasm{
			Config: &wasm.PluginConfig{Configuration: packed(t, wrapperspb.Bytes(p.Encode()))},
		})}
	}
	item := policy.Route{Name: "item", Product: "shop", Revision: "1 GET"}
	accept("1", filter(item))
	if got := r.present(); len(got) != 1 || got[meter.Route{Name: "item", Product: "shop"}] != "GET" {
		t.Errorf("%v", got)
	}
	accept("2", filter(item, policy.Route{Name: "order", Product: "shop"}))
	if got := r.present(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	accept("3", wrapperspb.Bool(true))
	if got := r.present(); len(got) != 2 {
		t.Errorf("what is no policy has changed them: %v", got)
	}
}
