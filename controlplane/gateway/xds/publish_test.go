package xds

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
)

// moved is the default document with one product and one route in place of
// others.
func moved(t testing.TB) config.Document {
	d := document(t)
	d.Products = append(d.Products, config.Product{Name: "voice", Upstreams: []config.Upstream{{Address: "127.0.0.1:4"}}})
	i := slices.IndexFunc(d.Routes, func(r config.Route) bool { return r.Name == "voice" })
	d.Routes[i].Name, d.Routes[i].Product = "voice.new", "voice"
	return d
}

// connected returns a client that holds what s serves, and is known to.
func connected(t *testing.T, s *Server, addr, id string) *client {
	t.Helper()
	c := dial(t, addr, id, "127.0.0.1:8080")
	c.askAll()
	c.take(5)
	until(t, s, func() bool { return statusByID(s, id).Current && len(statusByID(s, id).Types) == 5 })
	return c
}

func statusByID(s *Server, id string) EdgeStatus {
	for _, e := range s.Edges() {
		if e.ID == id {
			return e
		}
	}
	return EdgeStatus{}
}

// background publishes while the test answers as an edge.
func background(t *testing.T, s *Server, version int64, d config.Document) chan error {
	done := make(chan error, 1)
	go func() { done <- s.Publish(t.Context(), version, d) }()
	return done
}

// policyIn returns the policy that a response carries.
func policyIn(t *testing.T, r *discovery.DeltaDiscoveryResponse) *policy.Policy {
	t.Helper()
	var ext core.TypedExtensionConfig
	var filter wasmfilter.Wasm
	var raw wrapperspb.BytesValue
	if err := r.GetResources()[0].GetResource().UnmarshalTo(&ext); err != nil {
		t.Fatal(err)
	}
	if err := ext.GetTypedConfig().UnmarshalTo(&filter); err != nil {
		t.Fatal(err)
	}
	if err := filter.GetConfig().GetConfiguration().UnmarshalTo(&raw); err != nil {
		t.Fatal(err)
	}
	return policy.Parse(raw.GetValue())
}

func TestPolicyAndProductComeBeforeTheRouteAndGoAfterIt(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{AckTimeout: time.Minute})
	publish(t, s, 1, document(t))
	c := connected(t, s, addr, "edge-1")
	c.log = nil
	done := background(t, s, 2, moved(t))
	var policies []*policy.Policy
	for range 4 { // cluster and filter, routes, filter
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetTypeUrl() == resource.ExtensionConfigType {
			policies = append(policies, policyIn(t, r))
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.log, " "); got != "clusters filters routes filters" {
		t.Fatalf("order: %s", got)
	}
	for i, want := range []struct{ old, new bool }{{true, true}, {false, true}} {
		hasOld, hasNew := has(policies[i], "voice"), has(policies[i], "voice.new")
		if hasOld != want.old || hasNew != want.new {
			t.Errorf("push %d has the old route %v and the new one %v", i+1, hasOld, hasNew)
		}
	}
	until(t, s, func() bool { return statusByID(s, "edge-1").Current })
}

// has reports whether p has a route of any revision.
func has(p *policy.Policy, name string) bool {
	return slices.ContainsFunc(p.Routes, func(r policy.Route) bool { return r.Name == name })
}

// While edges may have a route of either version, they have the policy of both:
// what the old one asks in a rate class that is gone included.
func TestBothRevisionsOfARouteLiveWhileItChanges(t *testing.T) {
	t.Parallel()
	compiled := func(d config.Document) *policy.Policy {
		p, err := d.Policy(1, "", config.ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one := document(t)
	one.Classes = append(one.Classes, config.Class{Name: "bulk", PerMinute: 7})
	one.Routes[0].Class = "bulk"
	two := document(t)
	two.Routes[0].BodyLimit = 9
	two.Plans = append(two.Plans, config.Plan{Name: "late"})
	old, next := compiled(one), compiled(two)
	both := policy.Parse(overlapPolicy(old, next).Encode())
	was, ok := both.Route(old.Routes[0].Key())
	if !ok || both.Classes[was.Class] != "bulk" {
		t.Fatalf("the old revision: %+v", was)
	}
	for _, pl := range both.Plans {
		if pl.Limits[was.Class].PerMinute != 7 {
			t.Errorf("plan %s has %+v in the old class", pl.Name, pl.Limits[was.Class])
		}
	}
	if is, ok := both.Route(next.Routes[0].Key()); !ok || is.BodyLimit != 9 || is.Key() == was.Key() {
		t.Errorf("the new revision: %+v", is)
	}
	if overlapPolicy(next, next) != next {
		t.Error("a policy that did not change was merged")
	}
}

// While edges have two documents, what each has in the shadow stays there, and counts in
// windows of its own, whatever classes the other has.
func TestShadowsOverlap(t *testing.T) {
	t.Parallel()
	compiled := func(change func(*config.Document)) *policy.Policy {
		d := document(t)
		change(&d)
		p, err := d.Policy(1, "", config.ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bulk := config.Class{Name: "bulk", PerMinute: 7}
	ofBulk := func(shadow ...string) func(*config.Document) {
		return func(d *config.Document) {
			d.Classes = append(d.Classes, bulk)
			d.Routes[0].Class, d.Routes[0].Shadow = "bulk", shadow
		}
	}
	plain := func(d *config.Document) { d.Classes = append(d.Classes, config.Class{Name: "new", PerMinute: 3}) }
	elsewhere := func(d *config.Document) { d.Classes[0].Shadow = true }
	for name, c := range map[string][2]func(*config.Document){
		"begins": {ofBulk(), ofBulk("limit")}, "ends": {ofBulk("limit"), ofBulk()},
		"the class goes":                   {ofBulk("limit"), plain},
		"the class goes, another shadowed": {ofBulk("limit"), elsewhere},
		"an enforced class goes":           {ofBulk(), elsewhere},
	} {
		old, next := compiled(c[0]), compiled(c[1])
		both := policy.Parse(overlapPolicy(old, next).Encode())
		if both == nil {
			t.Fatal(name)
		}
		for _, from := range []*policy.Policy{old, next} {
			for i, was := range from.Routes {
				r, ok := both.Route(was.Key())
				if !ok || both.Classes[r.Class] != from.Classes[was.Class] || (r.Class >= policy.ShadowClass) != (was.Class >= policy.ShadowClass) {
					t.Fatalf("%s: route %d was %+v, is %+v", name, i, was, r)
				}
				for j, pl := range both.Plans {
					if want := from.Plans[min(j, len(from.Plans)-1)].Limits[was.Class]; pl.Limits[r.Class] != want {
						t.Errorf("%s: route %d has %+v, want %+v", name, i, pl.Limits[r.Class], want)
					}
				}
			}
		}
	}
}

// A document that sells nothing may follow one that did: edges take what stands between
// them, in which the routes that were sold still are.
func TestASoldRouteMayGoWithItsTerms(t *testing.T) {
	t.Parallel()
	sold := &policy.Policy{Classes: []string{"default"}, Payment: x402.Terms{Network: "base"}, Routes: []policy.Route{{Name: "clips", Price: 1}}}
	next := &policy.Policy{Classes: []string{"default"}, Routes: []policy.Route{{Name: "other"}}}
	both := policy.Parse(overlapPolicy(sold, next).Encode())
	if both == nil || both.Payment.Network != "base" || len(both.Routes) != 2 {
		t.Errorf("%+v", both)
	}
}

func TestProductGoesAfterItsLastRoute(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{AckTimeout: time.Minute})
	publish(t, s, 1, moved(t))
	c := connected(t, s, addr, "edge-1")
	c.log = nil
	done := background(t, s, 2, document(t))
	c.take(4)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.log, " "); got != "filters routes clusters filters" {
		t.Fatalf("order: %s", got)
	}
	if _, ok := c.held[resource.ClusterType]["voice"]; ok {
		t.Error("the product is still there")
	}
}

func TestNextStepWaitsForEveryEdge(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{AckTimeout: time.Minute})
	publish(t, s, 1, document(t))
	quick, slow := connected(t, s, addr, "quick"), connected(t, s, addr, "slow")
	done := background(t, s, 2, moved(t))
	quick.take(2)
	until(t, s, func() bool { return statusByID(s, "quick").Current })
	if got := s.late(); len(got) != 1 || got[0] != "slow" {
		t.Errorf("waiting for %v", got)
	}
	slow.take(2)
	for range 2 { // routes, then filters
		quick.take(1)
		slow.take(1)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestEdgeThatDoesNotAnswerHoldsNobodyUpForLong(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{AckTimeout: time.Millisecond})
	publish(t, s, 1, document(t))
	silent := connected(t, s, addr, "silent")
	publish(t, s, 2, moved(t))
	if e := statusByID(s, "silent"); s.Version() != 2 || e.Current {
		t.Errorf("version %d, %+v", s.Version(), e)
	}
	silent.serve()
	until(t, s, func() bool { return statusByID(s, "silent").Current })
}

func TestRefusalIsReportedAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{AckTimeout: time.Minute})
	publish(t, s, 1, document(t))
	c := connected(t, s, addr, "edge-1")
	var refuses atomic.Bool
	refuses.Store(true)
	c.refuse = func(typeURL string) bool { return refuses.Load() && typeURL == resource.RouteType }
	c.serve()
	publish(t, s, 2, moved(t))
	if e := statusByID(s, "edge-1"); e.Current || !slices.Equal(e.Refusals, []string{"routes: no, thank you"}) {
		t.Errorf("%+v", e)
	}
	refuses.Store(false)
	publish(t, s, 3, document(t))
	until(t, s, func() bool { return statusByID(s, "edge-1").Current })
	if refusal(s, "edge-1", "routes") != nil {
		t.Error("the refusal is still reported")
	}
}

func refusal(s *Server, id, typ string) *Refusal {
	for _, ts := range statusByID(s, id).Types {
		if ts.Type == typ {
			return ts.Refusal
		}
	}
	return nil
}

func TestWhatIsNotPublished(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, Config{})
	publish(t, s, 5, document(t))
	publish(t, s, 4, moved(t))
	if s.Version() != 5 || s.current.Clusters["voice"] != nil {
		t.Error("an older version was published")
	}
	bad := moved(t)
	bad.Classes = nil
	if err := s.Publish(t.Context(), 6, bad); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("%v", err)
	}
	if s.Version() != 5 || s.current.Clusters["voice"] != nil {
		t.Error("a document of which nothing can be served was published")
	}
}

// A version that newer rules find fault with is served all the same, to replicas
// that start too: but for the object at fault.
func TestOldFaultKeepsNothingElseFromEdges(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s, _ := newServer(t, Config{Metrics: registry})
	d := moved(t)
	at := slices.IndexFunc(d.Routes, func(r config.Route) bool { return r.Name == "streams.list" })
	d.Routes[at].Timeout = "soon"
	publish(t, s, 1, d)
	if s.Version() != 1 || s.current.Clusters["voice"] == nil {
		t.Errorf("version %d", s.Version())
	}
	i := slices.IndexFunc(s.current.Policy.Routes, func(r policy.Route) bool { return r.Name == "streams.list" })
	if r := s.current.Policy.Routes[i]; r.Auth != policy.AuthNone || r.Product != "" {
		t.Errorf("the route at fault is open: %+v", r)
	}
	want := "# HELP sluice_config_faults Faults of the version in force, for which objects are left out or closed.\n# TYPE sluice_config_faults gauge\nsluice_config_faults 1\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "sluice_config_faults"); err != nil {
		t.Error(err)
	}
}

// A product that this process knows no address for, after an upgrade or with
// other settings, does not keep the rest of a version from edges.
func TestProductWithoutAnAddressHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, Config{})
	d := moved(t)
	d.Products[0].Upstreams[0].Address = "${nowhere}"
	if err := s.Check(d); err == nil {
		t.Error("it would be stored")
	}
	publish(t, s, 1, d)
	lost := d.Products[0].Name
	if s.Version() != 1 || s.current.Clusters["voice"] == nil || len(s.current.Endpoints[lost].GetEndpoints()[0].GetLbEndpoints()) != 0 {
		t.Errorf("version %d, %v", s.Version(), s.current.Endpoints[lost])
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, Config{})
	if err := s.Check(document(t)); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*config.Document){
		"nothing to serve":           func(d *config.Document) { d.Classes = nil },
		"an address that is missing": func(d *config.Document) { d.Products[0].Upstreams[0].Address = "${nowhere}" },
	} {
		d := document(t)
		change(&d)
		if err := s.Check(d); apierror.Code(err) != decision.InvalidRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Check(moved(t)); err != nil || s.Version() != 0 {
		t.Errorf("%v, version %d", err, s.Version())
	}
}

// What was checked is what is published: it is compiled once, unless the numbers
// of its scopes were not known then.
func TestWhatWasCheckedIsCompiledOnce(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, Config{})
	check := func(d config.Document) *resources.Set {
		t.Helper()
		if err := s.Check(d); err != nil {
			t.Fatal(err)
		}
		return s.compiler.last.set
	}
	guessed := check(document(t))
	shifted := func(_ context.Context, d config.Document) (config.Numbers, error) {
		n := config.ProvisionalNumbers(d)
		for name := range n.Plans {
			n.Plans[name] += 100
		}
		return n, nil
	}
	s.config.Numbers = shifted
	publish(t, s, 1, document(t))
	if s.current == guessed || s.current.Policy.Plans[0].Number <= 100 {
		t.Errorf("numbers that were guessed are served: %+v", s.current.Policy.Plans)
	}
	checked := check(moved(t))
	publish(t, s, 2, moved(t))
	if s.current != checked {
		t.Error("it was compiled again")
	}
	if publish(t, s, 3, document(t)); s.current == checked {
		t.Error("another document was not compiled")
	}
}
