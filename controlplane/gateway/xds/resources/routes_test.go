package resources

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/apierror"
)

// compiled returns the Envoy routes that one route of the document becomes.
func compiled(t *testing.T, r config.Route) []*route.Route {
	t.Helper()
	r.Name, r.Auth = "it", []string{"key"}
	if r.Respond == nil {
		r.Product = "media"
	}
	d := config.Document{
		Classes:  []config.Class{{Name: "default", PerMinute: 60}},
		Products: []config.Product{{Name: "media", Upstreams: []config.Upstream{{Address: "10.0.0.1:80"}}}},
		Routes:   []config.Route{r},
	}
	sorted := build(t, d, Options{}).ordered(r.ListenerName())
	var list []*route.Route
	for _, b := range ofMethods(sorted) {
		if strings.HasPrefix(b.route.Name, "it@") {
			list = append(list, b.route)
		}
	}
	return list
}

func TestProductSeesTheCredentialOnlyWhereTheRouteSaysSo(t *testing.T) {
	t.Parallel()
	if r := compiled(t, config.Route{Path: "/a"})[0]; !slices.Equal(r.RequestHeadersToRemove, []string{"authorization", "x-payment", "payment-signature"}) {
		t.Errorf("removed: %v", r.RequestHeadersToRemove)
	}
	if r := compiled(t, config.Route{Path: "/a", ForwardCredentials: true})[0]; len(r.RequestHeadersToRemove) != 0 {
		t.Errorf("removed: %v", r.RequestHeadersToRemove)
	}
}

func TestKeyHeadersGoNoFurther(t *testing.T) {
	t.Parallel()
	d := config.Document{
		KeyHeaders: []string{"X-API-Key"}, Classes: []config.Class{{Name: "default", PerMinute: 1}},
		Products: []config.Product{{Name: "p", Upstreams: []config.Upstream{{Address: "a:1"}}}},
		Routes:   []config.Route{{Name: "it", Path: "/a", Product: "p", Auth: []string{"key"}}, {Name: "sent.on", Path: "/b", Product: "p", Auth: []string{"key"}, ForwardCredentials: true}},
	}
	s := build(t, d, Options{})
	for name, want := range map[string]bool{"it": true, "sent.on": false} {
		if got := slices.Contains(s.made[name].routes[0].route.RequestHeadersToRemove, "x-api-key"); got != want {
			t.Errorf("%s: taken away %v", name, got)
		}
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		route       config.Route
		total, idle time.Duration
	}{
		"by default":      {config.Route{}, 30 * time.Second, 31 * time.Second},
		"given":           {config.Route{Timeout: "2s"}, 2 * time.Second, 15 * time.Second},
		"long":            {config.Route{Timeout: "10m"}, 10 * time.Minute, 10*time.Minute + time.Second},
		"streaming":       {config.Route{Streaming: true}, 0, 5 * time.Minute},
		"streaming given": {config.Route{Streaming: true, Timeout: "90s"}, 0, 90 * time.Second},
	} {
		c.route.Path = "/a"
		a := compiled(t, c.route)[0].GetRoute()
		idle := defaultIdle // the listener's
		if a.IdleTimeout != nil {
			idle = a.IdleTimeout.AsDuration()
		}
		if a.Timeout.AsDuration() != c.total || idle != c.idle {
			t.Errorf("%s: %v in all, %v of silence", what, a.Timeout.AsDuration(), idle)
		}
	}
}

// A request that may have had an effect is never sent twice.
func TestRetries(t *testing.T) {
	t.Parallel()
	safe := map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "POST": false, "PATCH": false, "DELETE": false}
	var methods []string
	for m := range safe {
		methods = append(methods, m)
	}
	routes := append(compiled(t, config.Route{Path: "/a", Methods: methods}), compiled(t, config.Route{Path: "/a"})...)
	if len(routes) != len(safe)+1 {
		t.Fatalf("%d routes", len(routes))
	}
	for _, r := range routes {
		method := ""
		if len(r.Match.Headers) > 0 {
			method = r.Match.Headers[0].GetStringMatch().GetExact()
		}
		own := r.GetRoute().RetryPolicy
		if own == nil {
			own = usualRetries
		}
		on := strings.Split(own.RetryOn, ",")
		if !slices.Contains(on, "connect-failure") || slices.Contains(on, "reset") != safe[method] || slices.Contains(on, "5xx") {
			t.Errorf("%q is sent again on %v", method, on)
		}
	}
	// An empty policy of the route, since none would be the table's.
	if off := retries(config.Product{Retries: new(uint32)}, "GET"); off == nil || off.RetryOn != "" || unusual(off) == nil {
		t.Errorf("retries that are turned off: %v", off)
	}
}

func TestPathsAreComparedTheCheapestWay(t *testing.T) {
	t.Parallel()
	if m := compiled(t, config.Route{Path: "/a/b"})[0].Match; m.GetPath() != "/a/b" {
		t.Errorf("%v", m)
	}
	if m := compiled(t, config.Route{Path: "/a/*"})[0].Match; m.GetPrefix() != "/a/" {
		t.Errorf("%v", m)
	}
	if m := compiled(t, config.Route{Path: "/a.b/{id}/*"})[0].Match; m.GetSafeRegex().GetRegex() != `/a\.b/[^/]+/.*` {
		t.Errorf("%v", m)
	}
}

func TestBodiesThatFiltersMustSee(t *testing.T) {
	t.Parallel()
	r := compiled(t, config.Route{Path: "/a", BodyLimit: 123, ChatCaps: true})[0]
	if r.RequestBodyBufferLimit.GetValue() != 123 || r.TypedPerFilterConfig[ChatCapsFilter] == nil {
		t.Errorf("%v", r)
	}
	if r := compiled(t, config.Route{Path: "/a", ChatCaps: true})[0]; r.RequestBodyBufferLimit.GetValue() != config.DefaultHeld {
		t.Errorf("%v", r)
	}
	if r := compiled(t, config.Route{Path: "/a", BodyLimit: 123})[0]; r.RequestBodyBufferLimit != nil || r.TypedPerFilterConfig != nil {
		t.Errorf("%v", r)
	}
}

func TestAnswersOfTheEdge(t *testing.T) {
	t.Parallel()
	r := compiled(t, config.Route{Path: "/a", Respond: &config.Respond{Status: 200, Body: "{}"}})[0]
	if d := r.GetDirectResponse(); d.Status != 200 || d.Body.GetInlineString() != "{}" || r.ResponseHeadersToAdd[0].Header.Value != "application/json" {
		t.Errorf("%v", r)
	}
	r = compiled(t, config.Route{Path: "/a", Respond: &config.Respond{Status: 204}})[0]
	if d := r.GetDirectResponse(); d.Status != 204 || d.Body != nil || r.ResponseHeadersToAdd != nil {
		t.Errorf("%v", r)
	}
}

func TestHeadGoesWhereGetGoes(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"GET": "GET HEAD", "GET HEAD": "GET HEAD", "POST GET": "POST GET HEAD", "POST": "POST", "HEAD": "HEAD"} {
		var got []string
		for _, r := range compiled(t, config.Route{Path: "/a", Methods: strings.Fields(given)}) {
			got = append(got, r.Match.Headers[0].GetStringMatch().GetExact())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", given, got)
		}
	}
}

func TestWhatTheOptionsLackIsNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	d := everything()
	d.Products[1].Upstreams[0].Address = "${chat}"
	o := Options{Addresses: map[string][]string{"api": {"10.0.0.1:80"}}}
	err := o.CheckUpstreams(d)
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	var fields []string
	for _, d := range e.Details {
		fields = append(fields, d.Field)
	}
	if got := strings.Join(fields, " "); got != "products[0].upstreams[0].address products[1].upstreams[0].address" {
		t.Error(got)
	}
	s := build(t, d, o)
	media, chat := s.Endpoints["media"].Endpoints[0].LbEndpoints, s.Endpoints["chat"].Endpoints[0].LbEndpoints
	if len(media) != 1 || len(chat) != 0 || len(s.Routes) != 2 {
		t.Errorf("what is left: %v, %v", media, chat)
	}
}
