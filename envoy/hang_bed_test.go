package envoy

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpwasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// hangBed is an edge with two workers whose gateway has a filter that hangs at will.
type hangBed struct {
	*edgeBed
	hangs  chan struct{} // one for each worker that has begun to hang
	asked  chan struct{} // one for each request to /slow
	answer chan struct{} // closed: they are answered
}

func newHangBed(t *testing.T) *hangBed {
	t.Helper()
	b := &hangBed{hangs: make(chan struct{}, 8), asked: make(chan struct{}, 8), answer: make(chan struct{})}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked <- struct{}{}
		<-b.answer
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(slow.Close)
	b.edgeBed = newEdgeBedWith(t, func(c *EdgeConfig) {
		c.Concurrency, c.HandOverHung = 2, 15*time.Second
		c.Output = listening{testWriter{t}, "this worker hangs now", b.hangs}
		program := readHex(t, "hang.wasm.hex")
		if err := os.WriteFile(filepath.Join(c.Dir, "wasm", "hang.wasm"), program, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	b.publish(t, slow.Listener.Addr().String())
	<-b.edge.Ready()
	return b
}

// listening says when a text was written.
type listening struct {
	testWriter
	text  string
	heard chan<- struct{}
}

func (l listening) Write(p []byte) (int, error) {
	for range strings.Count(string(p), l.text) {
		l.heard <- struct{}{}
	}
	return l.testWriter.Write(p)
}

func readHex(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	program, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// publish gives the edge its two listeners: the gateway passes /slow on to addr.
func (b *hangBed) publish(t *testing.T, addr string) {
	t.Helper()
	cfg := b.edge.cfg.Bootstrap
	gateway := teapot(t, ListenerGateway, cfg.GatewayAddr)
	manager := &hcm.HttpConnectionManager{}
	packed := gateway.FilterChains[0].Filters[0].ConfigType.(*listener.Filter_TypedConfig)
	if err := packed.TypedConfig.UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	host := manager.GetRouteConfig().VirtualHosts[0]
	host.Routes = append([]*route.Route{{
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Path{Path: "/slow"}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: "slow"}, Timeout: durationpb.New(0),
		}},
	}}, host.Routes...)
	manager.HttpFilters = append([]*hcm.HttpFilter{{Name: "hang", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(t, &httpwasm.Wasm{
		Config: &wasm.PluginConfig{Name: "hang", Vm: &wasm.PluginConfig_VmConfig{VmConfig: &wasm.VmConfig{
			Runtime: "envoy.wasm.runtime.v8",
			Code:    &core.AsyncDataSource{Specifier: &core.AsyncDataSource_Local{Local: &core.DataSource{Specifier: &core.DataSource_Filename{Filename: "wasm/hang.wasm"}}}},
		}}},
	})}}}, manager.HttpFilters...)
	packed.TypedConfig = pack(t, manager)
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.ListenerType: {gateway, teapot(t, ListenerRuntime, cfg.RuntimeAddr)},
		resource.ClusterType:  {staticCluster(t, "slow", addr)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cp.cache.SetSnapshot(context.Background(), "all", snapshot); err != nil {
		t.Fatal(err)
	}
}

func staticCluster(t *testing.T, name, addr string) *cluster.Cluster {
	t.Helper()
	host, port, err := splitAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster.Cluster{Name: name, ConnectTimeout: durationpb.New(waitTimeout), LoadAssignment: &endpoint.ClusterLoadAssignment{
		ClusterName: name,
		Endpoints: []*endpoint.LocalityLbEndpoints{{LbEndpoints: []*endpoint.LbEndpoint{{HostIdentifier: &endpoint.LbEndpoint_Endpoint{
			Endpoint: &endpoint.Endpoint{Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
			}}}},
		}}}}},
	}}
}

// client is one connection, which is known to belong to a worker.
type client struct {
	*http.Client
	base   string
	worker string
	dials  int
}

// connections counts those that a worker has.
func (b *hangBed) connections(t *testing.T, worker string) int {
	t.Helper()
	stats, err := b.edge.admin.call(t.Context(), http.MethodGet, "/stats?filter="+url.QueryEscape(`^listener\..*\.`+worker+`\.downstream_cx_active$`))
	if err != nil {
		t.Fatal(err)
	}
	return sumStats(string(stats), "listener.admin.")
}

// connect opens a connection and finds out which worker has it. One that the Envoy
// of before still took is given up for another.
func (b *hangBed) connect(t *testing.T) *client {
	t.Helper()
	workers := []string{"worker_0", "worker_1"}
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); {
		c := &client{base: "http://" + b.edge.cfg.Bootstrap.GatewayAddr}
		c.Client = &http.Client{Timeout: waitTimeout, Transport: &http.Transport{MaxConnsPerHost: 1, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c.dials++
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}}
		t.Cleanup(c.CloseIdleConnections)
		before := map[string]int{}
		for _, w := range workers {
			before[w] = b.connections(t, w)
		}
		if status, err := c.ask("/", ""); err != nil || status != http.StatusTeapot {
			t.Fatal(status, err)
		}
		for _, w := range workers {
			if b.connections(t, w) > before[w] {
				c.worker = w
				return c
			}
		}
	}
	t.Fatal("no worker has a connection")
	return nil
}

func (c *client) ask(path, hang string) (int, error) {
	r, err := http.NewRequest(http.MethodPost, c.base+path, nil) // which the client does not repeat by itself
	if err != nil {
		return 0, err
	}
	if hang != "" {
		r.Header.Set("X-Hang", hang)
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// both connects until each worker has n connections, and returns them by worker.
func (b *hangBed) both(t *testing.T, n int) (one, other []*client) {
	t.Helper()
	of := map[string][]*client{}
	for len(of["worker_0"]) < n || len(of["worker_1"]) < n {
		c := b.connect(t)
		of[c.worker] = append(of[c.worker], c)
	}
	return of["worker_0"], of["worker_1"]
}

type answer struct {
	status int
	err    error
}

// later asks, and returns where the answer will be.
func (c *client) later(path, hang string) <-chan answer {
	a := make(chan answer, 1)
	go func() {
		status, err := c.ask(path, hang)
		a <- answer{status, err}
	}()
	return a
}
