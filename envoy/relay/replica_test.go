package relay

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
)

// replica is a control plane in the hands of a test.
type replica struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	addr    string
	server  *http.Server
	refuses bool // it has no configuration

	heard chan *discovery.DeltaDiscoveryRequest  // what it is told
	say   chan *discovery.DeltaDiscoveryResponse // what it sends
	other chan string                            // other requests: method, path, authorization and body
}

func startReplica(t *testing.T) *replica {
	t.Helper()
	r := &replica{heard: make(chan *discovery.DeltaDiscoveryRequest, 100), say: make(chan *discovery.DeltaDiscoveryResponse), other: make(chan string, 100)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, r)
	mux := http.NewServeMux()
	mux.Handle("/envoy.service.discovery.v3.AggregatedDiscoveryService/", g)
	mux.HandleFunc(edgeapi.RecordsPath, r.feed)
	mux.HandleFunc(edgeapi.ReportPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.other <- strings.Join([]string{q.Method, q.URL.Path, q.Header.Get("Authorization"), string(body)}, " ")
		_, _ = io.WriteString(w, "done")
	})
	r.addr, r.server = l.Addr().String(), &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	r.server.Protocols.SetHTTP1(true)
	r.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = r.server.Serve(l) }()
	t.Cleanup(func() { r.server.Close() })
	return r
}

// feed has one record, and no changes.
func (r *replica) feed(w http.ResponseWriter, q *http.Request) {
	p := keytable.Page{Last: true, Epoch: 5, Position: 70, Hi: keytable.Buckets - 1}
	if q.URL.Query().Get("epoch") == "0" {
		p.Snapshot, p.Records = true, record(1, 1)
	} else if q.URL.Query().Get("wait") != "0" {
		select {
		case <-q.Context().Done():
		case <-time.After(time.Second): // a long poll
		}
	}
	_, _ = w.Write(p.Append(nil))
}

func (r *replica) DeltaAggregatedResources(s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if r.refuses {
		return status.Error(codes.Unavailable, "no configuration yet")
	}
	if err := s.SendHeader(metadata.Pairs(edgeapi.VersionHeader, "1")); err != nil {
		return err
	}
	go func() {
		for {
			q, err := s.Recv()
			if err != nil {
				return
			}
			r.heard <- q
		}
	}()
	for {
		select {
		case a := <-r.say:
			if err := s.Send(a); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// startRelay runs a relay until the test ends, or stop is called.
func startRelay(t *testing.T, dir string, upstreams ...string) (r *Relay, stop func()) {
	t.Helper()
	r, err := New(Config{Upstreams: upstreams, Token: "upstream token", Edge: "e1", Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return r, stop
}

// puppet is an Envoy in the hands of a test.
type puppet struct {
	t      *testing.T
	base   string
	token  string
	stream client
}

func admit(t *testing.T, r *Relay) *puppet {
	t.Helper()
	p := &puppet{t: t, base: "http://" + r.Addr(), token: r.Admit()}
	conn, err := grpc.NewClient("passthrough:///"+r.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+p.token)
	p.stream, err = discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *puppet) send(q *discovery.DeltaDiscoveryRequest) {
	p.t.Helper()
	if err := p.stream.Send(q); err != nil {
		p.t.Fatal(err)
	}
}

func (p *puppet) recv() *discovery.DeltaDiscoveryResponse {
	p.t.Helper()
	a, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// load reads the feed as keysync does, until it is current.
func (p *puppet) load(m memory) keytable.State {
	p.t.Helper()
	for s := (keytable.State{}); ; {
		b := p.get(edgeapi.RecordsPath+"?"+s.Query(0), p.token, 200)
		page, ok := keytable.ParsePage([]byte(b))
		if !ok {
			p.t.Fatal("the relay answers with no page")
		}
		if s = s.Apply(page, m); !page.Snapshot && page.Last {
			return s
		}
	}
}

// get makes a request, again while the relay says that it must wait.
func (p *puppet) get(path, token string, want int) string {
	p.t.Helper()
	for {
		q, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			p.t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		if res.StatusCode == http.StatusServiceUnavailable && want != res.StatusCode {
			continue
		}
		if res.StatusCode != want {
			p.t.Fatalf("%s: %d %s", path, res.StatusCode, b)
		}
		return string(b)
	}
}

func ask(typ string, names ...string) *discovery.DeltaDiscoveryRequest {
	return &discovery.DeltaDiscoveryRequest{TypeUrl: typ, ResourceNamesSubscribe: names}
}

func offer(typ, nonce string, named ...string) *discovery.DeltaDiscoveryResponse {
	a := &discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: nonce}
	for _, n := range named {
		name, v, _ := strings.Cut(n, "=")
		a.Resources = append(a.Resources, &discovery.Resource{Name: name, Version: v})
	}
	return a
}

func accept(typ, nonce string) *discovery.DeltaDiscoveryRequest {
	return &discovery.DeltaDiscoveryRequest{TypeUrl: typ, ResponseNonce: nonce}
}

func refuse(typ, nonce string) *discovery.DeltaDiscoveryRequest {
	q := accept(typ, nonce)
	q.ErrorDetail = &rpc.Status{Code: 3, Message: "no, thank you"}
	return q
}

// What Envoy accepts and refuses reaches the replica as Envoy said it, and only
// what it accepted is saved.
func TestAcceptancesAndRefusalsReachTheReplica(t *testing.T) {
	t.Parallel()
	up := startReplica(t)
	r, _ := startRelay(t, t.TempDir(), up.addr)
	p := admit(t, r)
	p.send(ask(resource.ClusterType))
	if q := <-up.heard; q.GetTypeUrl() != resource.ClusterType {
		t.Fatal(q)
	}
	up.say <- offer(resource.ClusterType, "1", "a=1", "b=1")
	if a := p.recv(); a.GetNonce() != "1" || len(a.GetResources()) != 2 {
		t.Fatal(a)
	}
	p.send(accept(resource.ClusterType, "1"))
	if q := <-up.heard; q.GetResponseNonce() != "1" || q.GetErrorDetail() != nil {
		t.Fatal(q)
	}
	up.say <- offer(resource.ClusterType, "2", "a=2")
	p.recv()
	p.send(refuse(resource.ClusterType, "2"))
	if q := <-up.heard; q.GetResponseNonce() != "2" || q.GetErrorDetail().GetMessage() != "no, thank you" {
		t.Fatal(q)
	}
	r.lastGood.mu.Lock()
	defer r.lastGood.mu.Unlock()
	if held := r.lastGood.types[resource.ClusterType]; len(held) != 2 || held["a"].GetVersion() != "1" {
		t.Errorf("saved: %v", held)
	}
}

// fill makes Envoy accept one resource of each type.
func fill(t *testing.T, up *replica, p *puppet) {
	t.Helper()
	p.load(memory{})
	for _, typ := range requiredTypes {
		p.send(ask(typ))
		<-up.heard
		up.say <- offer(typ, typ, "x=1")
		p.recv()
		p.send(accept(typ, typ))
		<-up.heard
	}
}

func TestEdgeRestartedWithoutAReplicaServesWhatItAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startReplica(t)
	first, stop := startRelay(t, dir, up.addr)
	fill(t, up, admit(t, first))
	if s := first.Status(); s.State != Live || s.FeedPosition != 70 {
		t.Errorf("%+v", s)
	}
	stop()
	up.server.Close()
	second, _ := startRelay(t, dir, up.addr)
	p, m := admit(t, second), memory{}
	p.send(ask(resource.ListenerType))
	p.send(ask(resource.RouteType, "x", "y"))
	if s := p.load(m); s.Position != 70 || len(m.records()) != 1 {
		t.Errorf("%+v, %d records", s, len(m.records()))
	}
	if a := p.recv(); a.GetTypeUrl() != resource.ListenerType || a.GetResources()[0].GetVersion() != "1" {
		t.Error(a)
	}
	if a := p.recv(); a.GetResources()[0].GetName() != "x" || a.GetRemovedResources()[0] != "y" {
		t.Error(a)
	}
	if s := second.Status(); s.State != Cached || s.FeedPosition != 70 {
		t.Errorf("%+v", s)
	}
}

func TestListenersWaitForTheKeys(t *testing.T) {
	t.Parallel()
	up := startReplica(t)
	r, _ := startRelay(t, t.TempDir(), up.addr)
	p := admit(t, r)
	p.send(ask(resource.ListenerType))
	<-up.heard
	up.say <- offer(resource.ListenerType, "1", "gateway=1")
	p.load(memory{})
	p.recv()
	r.mu.Lock()
	e := r.envoys[0]
	r.mu.Unlock()
	select {
	case <-e.loaded:
	default:
		t.Error("the listeners came before the keys")
	}
}

// A replica without a configuration is passed over, and so is a dead one.
func TestTheNextReplicaServes(t *testing.T) {
	t.Parallel()
	empty, up := startReplica(t), startReplica(t)
	empty.refuses = true
	r, _ := startRelay(t, t.TempDir(), "127.0.0.1:1", empty.addr, up.addr)
	p := admit(t, r)
	p.send(ask(resource.ClusterType))
	<-up.heard
	up.server.Close()
	if _, err := p.stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream outlives its replica: %v", err)
	}
}

func TestEnvoyComesBackToAReplica(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startReplica(t)
	first, stop := startRelay(t, dir, up.addr)
	fill(t, up, admit(t, first))
	stop()
	up.server.Close()
	back := startReplica(t)
	w := &switched{to: "127.0.0.1:1"}
	second, _ := startRelay(t, dir, w.listen(t))
	p := admit(t, second)
	p.send(ask(resource.ClusterType))
	if a := p.recv(); a.GetResources()[0].GetVersion() != "1" {
		t.Error(a)
	}
	w.set(back.addr)
	if _, err := p.stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("it is not told that a replica is back: %v", err)
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	t.Parallel()
	up := startReplica(t)
	r, _ := startRelay(t, t.TempDir(), up.addr)
	p := admit(t, r)
	p.get(edgeapi.RecordsPath, "wrong", http.StatusUnauthorized)
	p.get("/anything", "", http.StatusUnauthorized)
	r.Admit()
	p.get("/anything", p.token, 200)
	r.Admit() // the third Envoy: the first is gone
	p.get("/anything", p.token, http.StatusUnauthorized)
}

// What the relay does not know it passes on, with the replica's token.
func TestOtherRequestsPass(t *testing.T) {
	t.Parallel()
	up := startReplica(t)
	r, _ := startRelay(t, t.TempDir(), "127.0.0.1:1", up.addr)
	p := admit(t, r)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/usage/v1/batch", strings.NewReader("counts"))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+p.token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := <-up.other; got != "POST /usage/v1/batch Bearer upstream token counts" || res.StatusCode != 200 {
		t.Errorf("%d, the replica got %q", res.StatusCode, got)
	}
}
