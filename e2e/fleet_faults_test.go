package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/e2e/harness"
)

// replica is one more control plane of a stack, in a process of the test.
type replica struct {
	*harness.Process
	admin, xds string
}

// addReplica starts a replica whose public API listens on api.
func (s *stack) addReplica(t testing.TB, api string) *replica {
	t.Helper()
	env := s.secrets(t)
	addrs := freeAddrs(t, 2)
	env["SLUICE_ADMIN_ADDR"], env["SLUICE_XDS_ADDR"], env["SLUICE_API_LISTEN"] = addrs[0], addrs[1], api
	r := &replica{run(t, env, "controlplane"), "http://" + addrs[0], addrs[1]}
	t.Cleanup(r.Kill)
	eventually(t, "the second replica answers", func() error {
		res, err := try(http.MethodGet, r.admin+"/health", "", nil)
		if err == nil && res.StatusCode != 200 {
			err = errors.New(res.Status + "\n" + r.Tail())
		}
		return err
	})
	return r
}

// document writes the stack's configuration with one more route per name.
func (s *stack) document(t testing.TB, routes ...string) string {
	t.Helper()
	b, err := os.ReadFile("../deploy/sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, name := range routes {
		text = strings.Replace(text, "\nroutes:\n", "\nroutes:\n  - {name: "+name+", methods: [GET], path: /v1/"+name+", auth: [key], scope: streams:read, product: media}\n", 1)
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// under makes requests to an edge all the time, and fails the test if one fails.
func (e *edge) under(t testing.TB, key string, f func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan []string, 1)
	go func() {
		_, failures := load(stop, 2, func() error {
			r, err := try(http.MethodGet, e.base+"/v1/streams?limit=1", key, nil)
			if err == nil && r.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d: %s", r.StatusCode, r.body)
			}
			return err
		})
		done <- failures
	}()
	f()
	close(stop)
	if failures := <-done; len(failures) > 0 {
		t.Errorf("%d requests failed, first: %s\n%s", len(failures), failures[0], e.Tail())
	}
}

// The replica that took a publication and serves an edge is killed while it
// publishes. The other one finishes it, the edge moves there, no request fails.
func TestReplicaKilledWhilePublishing(t *testing.T) {
	t.Parallel()
	apis := freeAddrs(t, 2)
	s := own(t, map[string]string{"SLUICE_API_LISTEN": apis[0], "SLUICE_API_UPSTREAM": apis[0] + "," + apis[1]})
	r := s.addReplica(t, apis[1])
	e := s.addEdge(t, "edge-moves", r.xds+","+s.env["SLUICE_XDS_ADDR"])
	s.listed(t, "edge-moves", "current")
	e.reachesAPI(t, r, s.dev["SLUICE_API_KEY"])
	through := maps.Clone(s.admin())
	through["SLUICE_ADMIN_URL"] = r.admin
	doc := s.document(t, "late")
	e.under(t, s.dev["SLUICE_API_KEY"], func() {
		if status, out, errs := sluice(t, through, "apply", "-f", doc); status != 0 {
			t.Fatal(out, errs)
		}
		if err := r.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		status, out, errs := sluice(t, s.admin(), "apply", "-f", doc, "--wait")
		if status != 0 || !strings.Contains(out, "nothing to change") || !strings.Contains(errs, "every live edge holds version") {
			t.Errorf("status %d: %s%s", status, out, errs)
		}
		s.listed(t, "edge-moves", "current")
	})
	for range 20 { // the API of the killed replica is asked no more
		wantStatus(t, call(t, http.MethodGet, e.base+"/v1/auth/validate", s.dev["SLUICE_API_KEY"], nil), http.StatusOK)
	}
	// The product does not know the path; the edge does.
	if res := call(t, http.MethodGet, e.base+"/v1/late", s.dev["SLUICE_API_KEY"], nil); res.StatusCode == 403 || res.StatusCode >= 500 {
		t.Errorf("the route of the killed replica's version: %d %s", res.StatusCode, res.body)
	}
	refusing := startRefusing(t, s.env["SLUICE_XDS_ADDR"], readEnv(t, filepath.Join(s.dir, "secrets.env"))["SLUICE_FEED_TOKEN"])
	s.listed(t, refusing, "current")
	status, out, errs := sluice(t, s.admin(), "apply", "-f", s.document(t, "late", "later"), "--wait")
	if status != 3 || !strings.Contains(errs, refusing+" holds version") || !strings.Contains(errs, "refuses filters: no, thank you") {
		t.Errorf("an edge refuses: status %d: %s%s", status, out, errs)
	}
	s.listed(t, refusing, "refuses")
	s.listed(t, "edge-moves", "current")
}

// reachesAPI returns when a request to the edge has been answered by the public
// API of r.
func (e *edge) reachesAPI(t testing.TB, r *replica, key string) {
	t.Helper()
	eventually(t, "the second replica's API is asked", func() error {
		if res, err := try(http.MethodGet, e.base+"/v1/auth/validate", key, nil); err != nil || res.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(res.body))
		}
		m, err := try(http.MethodGet, r.admin+"/metrics", "", nil)
		if err == nil && !strings.Contains(m.body, `route="/v1/auth/validate"`) {
			err = errors.New("none of its requests came there")
		}
		return err
	})
}

// startRefusing connects an edge that takes what there is, and refuses every
// change. It returns its name.
func startRefusing(t testing.TB, xds, token string) string {
	t.Helper()
	const name = "edge-refuses"
	conn, err := grpc.NewClient("passthrough:///"+xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := structpb.NewStruct(map[string]any{"gateway_addr": "127.0.0.1:1", "runtime_addr": "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	node := &core.Node{Id: name, Metadata: meta}
	for typ, names := range map[string][]string{
		resource.ClusterType: nil, resource.ListenerType: nil, resource.RouteType: {"gateway", "runtime"}, resource.ExtensionConfigType: {"sluice.edge"},
	} {
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: typ, ResourceNamesSubscribe: names}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		taken := map[string]bool{}
		for {
			a, err := stream.Recv()
			if err != nil {
				return
			}
			q := &discovery.DeltaDiscoveryRequest{TypeUrl: a.GetTypeUrl(), ResponseNonce: a.GetNonce()}
			if taken[a.GetTypeUrl()] {
				q.ErrorDetail = &rpc.Status{Code: 3, Message: "no, thank you"}
			}
			taken[a.GetTypeUrl()] = true
			if stream.Send(q) != nil {
				return
			}
		}
	}()
	return name
}

// Postgres is away: edges decide as before, the API answers 503 with Retry-After,
// and all of it goes on by itself when it is back. `make outages` keeps it away for
// longer.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	env := settings(t, dir)
	db, err := url.Parse(env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, db.Host)
	db.Host = w.addr()
	env["SLUICE_DATABASE_URL"] = db.String()
	s := startIn(t, dir, env)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	key, _ := s.newKey(t, "clips:write")
	s.listed(t, "edge-1", "current")
	w.set(true)
	for range 3 {
		wantStatus(t, call(t, http.MethodGet, s.url("/health"), "", nil), 200)
		wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), unknownKey, nil), 401, "invalid_api_key")
		wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 403)
		r := call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/edges", s.dev["SLUICE_ADMIN_KEY"], nil)
		wantStatus(t, r, 503)
		if number(t, r, "Retry-After") < 1 {
			t.Error("no Retry-After")
		}
	}
	outage(t, func() error {
		r, err := try(http.MethodGet, s.url("/v1/streams"), key, nil)
		if err == nil && r.StatusCode != http.StatusForbidden { // the edge decides by the key's scope
			err = errors.New(r.Status + " " + r.body)
		}
		return err
	})
	w.set(false)
	for url, key := range map[string]string{
		s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/edges": s.dev["SLUICE_ADMIN_KEY"],
		s.url("/v1/streams"):                          s.dev["SLUICE_API_KEY"],
	} {
		eventually(t, url+" is back", func() error {
			r, err := try(http.MethodGet, url, key, nil)
			if err == nil && r.StatusCode != 200 {
				err = errors.New(r.Status)
			}
			return err
		})
	}
	fresh, id := s.newKey(t, "streams:read")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), fresh, nil), 200)
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
	s.refused(t, fresh)
	if status, out, errs := sluice(t, s.admin(), "apply", "-f", s.document(t, "after"), "--wait"); status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	s.listed(t, "edge-1", "current")
}

// Envoys take over from each other under load, by SIGHUP to the agent, and no
// request fails or is refused for want of keys.
func TestHotRestartOfAnEdge(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	e := s.addEdge(t, "edge-hot", s.env["SLUICE_XDS_ADDR"])
	e.under(t, s.dev["SLUICE_API_KEY"], func() {
		for epoch := 1; epoch <= 2; epoch++ {
			if err := e.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another Envoy serves", func() error {
				if !strings.Contains(e.Output(), fmt.Sprintf(`taken over" process=edge epoch=%d`, epoch)) {
					return errors.New(e.Tail())
				}
				return nil
			})
		}
	})
	s.listed(t, "edge-hot", "current")
}
