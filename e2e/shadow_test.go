package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// wouldRefuse is how many requests of a route the edge's metrics count in the shadow of
// a refusal.
func (s *stack) wouldRefuse(t testing.TB, route, code string, want int) {
	t.Helper()
	line := fmt.Sprintf(`sluice_edge_would_refuse_total{product="shade",route="%s",would="%s"} %d`, route, code, want)
	eventually(t, line, func() error {
		r, err := try(http.MethodGet, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics", "", nil)
		if err != nil {
			return err
		}
		if want > 0 && !strings.Contains(r.body, line+"\n") || want == 0 && strings.Contains(r.body, strings.TrimSuffix(line, "0")) {
			return fmt.Errorf("not in the metrics")
		}
		return nil
	})
}

// What a route has in the shadow refuses nobody, is counted to the last request, and
// says in the request log whom it would have refused and why; what it does not have
// there refuses as ever. A limit in the shadow uses up none of an enforced one.
func TestRequirementsInTheShadow(t *testing.T) {
	t.Parallel()
	s := own(t, nil)
	var asked atomic.Int64
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for name := range r.Header {
			if strings.Contains(strings.ToLower(name), "would") {
				t.Errorf("the product is told %s", name)
			}
		}
		if !strings.HasPrefix(r.Header.Get("X-Sluice-Identity"), "v2;u=shade;") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(product.Close)
	s.change(t, "products/shade", map[string]any{"upstreams": []any{map[string]any{"address": product.Listener.Addr().(*net.TCPAddr).String()}}})
	s.change(t, "classes/tight", map[string]any{"per_minute": 5})
	route := func(name string, with map[string]any) {
		with["path"], with["product"] = "/v1/shade/"+name, "shade"
		s.change(t, "routes/shade."+name, with)
	}
	key, id := s.newKey(t, "streams:read")
	shades := func(n, status int, name, credential string) (last response) {
		t.Helper()
		for range n {
			if last = call(t, http.MethodGet, s.url("/v1/shade/"+name), credential, nil); last.StatusCode != status {
				t.Fatalf("%s: %d, want %d: %s", name, last.StatusCode, status, last.body)
			}
		}
		return last
	}
	route("limit", map[string]any{"class": "tight", "shadow": []string{"limit"}})
	route("enforced", map[string]any{"class": "tight"})
	route("scope", map[string]any{"scope": "clips:write", "shadow": []string{"scope"}})
	route("first", map[string]any{"scope": "clips:write", "shadow": []string{"scope"}})
	s.held(t)
	// With the first shadow listeners change, and those of before record no shadows of the
	// requests that are still theirs.
	eventually(t, "what is in the shadow is recorded", func() error {
		shades(1, 200, "first", key)
		if _, out, errs := sluice(t, s.env, "requests", "--would-refuse", "--route", "shade.first"); !strings.Contains(out, "would:AUTH_002") {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})

	// The scope.
	scoped := s.recordedAs(t, shades(7, 200, "scope", key))
	if got := scoped.WouldRefuse + ": " + scoped.WouldReason; got != "AUTH_002: scope is not granted to this credential; expected: clips:write" || scoped.Code != "" || scoped.Key != id {
		t.Errorf("recorded %+v", scoped)
	}
	if !strings.HasSuffix(scoped.Explanation, "It passed because its route has that in the shadow, or the edge would have refused it: AUTH_002, "+id+" lacks the scope clips:write.") {
		t.Errorf("explained by %q", scoped.Explanation)
	}
	s.wouldRefuse(t, "shade.scope", "AUTH_002", 7)
	wantError(t, call(t, http.MethodGet, s.url("/v1/shade/scope"), "", nil), 401, "authentication_required")
	wantError(t, call(t, http.MethodGet, s.url("/v1/shade/scope"), key[:len(key)-1], nil), 401, "invalid_api_key")

	// The limit: of 12, seven are over it. It shows nowhere, and the enforced limit of
	// the same class has all of its five left.
	before := asked.Load()
	last := shades(12, 200, "limit", key)
	if asked.Load()-before != 12 || last.Header.Get("X-RateLimit-Remaining") != "" || last.Header.Get("RateLimit") != "" {
		t.Errorf("%d reached the product, headers %v", asked.Load()-before, last.Header)
	}
	s.wouldRefuse(t, "shade.limit", "rate_limit_exceeded", 7)
	if got := s.recordedAs(t, last); got.WouldRefuse != "rate_limit_exceeded" {
		t.Errorf("recorded %+v", got)
	}
	if r := shades(5, 200, "enforced", key); r.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%v", r.Header)
	}
	wantError(t, call(t, http.MethodGet, s.url("/v1/shade/enforced"), key, nil), 429, "rate_limit_exceeded")
	s.wouldRefuse(t, "shade.enforced", "rate_limit_exceeded", 0)

	// Who looks for them finds them, once the edge has told of all.
	eventually(t, "the requests without the scope are listed", func() error {
		status, out, errs := sluice(t, s.env, "requests", "--would-refuse", "--route", "shade.scope")
		if status != 0 || strings.Count(out, "would:AUTH_002") != 7 {
			return fmt.Errorf("status %d\n%s%s", status, out, errs)
		}
		return nil
	})
	eventually(t, "the requests over the limit are listed", func() error {
		_, out, errs := sluice(t, s.env, "requests", "--would-refuse=rate_limit_exceeded")
		if strings.Contains(out, "AUTH_002") {
			t.Fatal(out)
		}
		if strings.Count(out, "would:rate_limit_exceeded") != 7 {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})

	// Enforced, the same requests are refused.
	route("scope", map[string]any{"scope": "clips:write"})
	s.held(t)
	shades(1, 403, "scope", key)

	// The quota: it is used up for all routes but those that have it in the shadow.
	route("quota", map[string]any{"shadow": []string{"quota"}})
	s.quota(t, 1)
	eventually(t, "the quota is used up", func() error { return s.oneOf("/v1/streams", key, 403) })
	shades(3, 200, "quota", key)
	s.wouldRefuse(t, "shade.quota", "BILLING_002", 3)
}
