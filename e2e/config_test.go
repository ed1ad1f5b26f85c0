package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// put changes one object of the configuration, and waits until every edge has it.
func (s *stack) put(t testing.TB, object string, body map[string]any) {
	t.Helper()
	s.change(t, object, body)
	s.held(t)
}

// drop removes one object of the configuration, and waits until no edge has it.
func (s *stack) drop(t testing.TB, object string) {
	t.Helper()
	s.change(t, object, nil)
	s.held(t)
}

// change puts one object, or removes it when body is nil, and waits for nobody: for tests
// that make changes faster than edges take them.
func (s *stack) change(t testing.TB, object string, body map[string]any) {
	t.Helper()
	method := http.MethodPut
	var sent any = body
	if body == nil {
		method, sent = http.MethodDelete, nil
	}
	r := call(t, method, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/"+object, s.dev["SLUICE_ADMIN_KEY"], sent)
	if r.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, object, r.StatusCode, r.body)
	}
}

// held waits until every connected edge holds the newest configuration, as `apply --wait`
// does. A request for what one has just published must not be sent before: that another,
// later change is seen already says nothing, as policy, routes and addresses reach an edge
// each in a message of their own.
func (s *stack) held(t testing.TB) {
	t.Helper()
	eventually(t, "every edge holds the configuration", s.isHeld)
}

// isHeld fails while a connected edge does not hold the newest configuration, or none is
// connected.
func (s *stack) isHeld() error {
	r, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/edges", s.dev["SLUICE_ADMIN_KEY"], nil)
	if err = unless(err, r, http.StatusOK); err != nil {
		return err
	}
	var fleet struct {
		Data []struct{ Connected, Current bool }
	}
	if err := json.Unmarshal([]byte(r.body), &fleet); err != nil {
		return err
	}
	connected := 0
	for _, e := range fleet.Data {
		if e.Connected && !e.Current {
			return errors.New(r.body)
		}
		if e.Connected {
			connected++
		}
	}
	if connected == 0 {
		return errors.New("no edge is connected: " + r.body)
	}
	return nil
}

// becomes asks the gateway for a path until it answers with status.
func (s *stack) becomes(t testing.TB, path string, status int) {
	t.Helper()
	eventually(t, path, func() error { return s.oneOf(path, "", status) })
}

// oneOf fails unless a path answers with one of some statuses.
func (s *stack) oneOf(path, credential string, statuses ...int) error {
	r, err := try(http.MethodGet, s.url(path), credential, nil)
	if err == nil && !slices.Contains(statuses, r.StatusCode) {
		err = fmt.Errorf("%s: %d, want one of %v: %s", path, r.StatusCode, statuses, r.body)
	}
	return err
}

// configChanges is how many changes are made under load.
const configChanges = 100

// While a hundred changes are made, one after the other, no request of routes
// that stay fails. And none is judged by the policy of another version: one
// route is now here and open to all, now there and shut.
func TestConfigChangesUnderLoad(t *testing.T) {
	t.Parallel()
	s := own(t, nil) // its requests without a key use up the window of this machine's address
	s.mistakesAndRollback(t)
	s.features(t)
	s.unlimited(t)
	s.paidBySecondVersion(t)
	product := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(product.Close)
	_, port, _ := net.SplitHostPort(product.Listener.Addr().String())
	upstream := func(host string) map[string]any {
		return map[string]any{"upstreams": []any{map[string]any{"address": net.JoinHostPort(host, port)}}}
	}
	here := map[string]any{"path": "/v1/moving/here", "product": "probe", "auth": []string{"none"}}
	there := map[string]any{"path": "/v1/moving/there", "product": "probe", "auth": []string{"key"}, "scope": "clips:write"}
	s.put(t, "products/probe", upstream("127.0.0.1"))
	s.put(t, "routes/steady", map[string]any{"path": "/v1/steady", "product": "probe", "auth": []string{"none"}})
	s.put(t, "routes/moving", here)
	s.becomes(t, "/v1/moving/here", 200)
	key := s.dev["SLUICE_API_KEY"]
	s.accepted(t, key)

	stop, done := make(chan struct{}), make(chan []string)
	go func() {
		calls, failures := load(stop, 4, func() error {
			return errors.Join(
				s.oneOf("/v1/steady", "", 200), s.oneOf("/v1/streams", key, 200),
				s.oneOf("/v1/moving/here", "", 200, 403), s.oneOf("/v1/moving/there", "", 401, 403))
		})
		t.Logf("%d rounds of four requests", calls)
		done <- failures
	}()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range configChanges {
		switch kind := random.IntN(5); {
		case i%10 == 0: // another product serves the same route
			s.change(t, "products/probe", upstream([]string{"127.0.0.1", "localhost"}[i/10%2]))
		case kind == 0:
			s.change(t, fmt.Sprintf("classes/class%d", i), map[string]any{"per_minute": 1 + random.IntN(1000)})
		case kind == 1:
			s.change(t, fmt.Sprintf("routes/more%d", i), map[string]any{"path": fmt.Sprintf("/v1/more/%d/{id}", i), "product": "probe", "auth": []string{"none"}})
			s.becomes(t, fmt.Sprintf("/v1/more/%d/x", i), 200)
			s.change(t, fmt.Sprintf("routes/more%d", i), nil)
		case kind%2 == 0:
			s.change(t, "routes/moving", there)
			s.becomes(t, "/v1/moving/there", 401)
		default:
			s.change(t, "routes/moving", here)
			s.becomes(t, "/v1/moving/here", 200)
		}
	}
	close(stop)
	if failures := <-done; len(failures) > 0 {
		t.Fatalf("%d rounds failed, first: %s", len(failures), failures[0])
	}
}

// mistakes are refused by the name of their fields and change nothing; a
// rollback brings back what was.
func (s *stack) mistakesAndRollback(t *testing.T) {
	t.Helper()
	admin := func(method, path string, body any) response {
		t.Helper()
		return call(t, method, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/"+path, s.dev["SLUICE_ADMIN_KEY"], body)
	}
	r := admin(http.MethodPut, "routes/mistaken", map[string]any{"path": "mistaken", "product": "none", "auth": []string{"key"}})
	var fields []string
	for _, d := range into[envelope](t, r).Error.Details {
		fields = append(fields, d.Field)
	}
	if r.StatusCode != 400 || !slices.Equal(fields, []string{"path", "product"}) {
		t.Errorf("%d %v", r.StatusCode, fields)
	}
	gateway := strings.TrimPrefix(s.dev["SLUICE_GATEWAY_URL"], "http://")
	if r := admin(http.MethodPut, "products/loop", map[string]any{"upstreams": []any{map[string]any{"address": gateway}}}); r.StatusCode != 400 {
		t.Errorf("a product that is the edge itself: %d %s", r.StatusCode, r.body)
	}

	s.put(t, "routes/brief", map[string]any{"path": "/v1/brief", "respond": map[string]any{"status": 200}, "auth": []string{"none"}})
	s.becomes(t, "/v1/brief", 200)
	status, out, errs := sluice(t, s.cli(), "config", "history", "--limit", "1", "-o", "json")
	if status != 0 {
		t.Fatal(out, errs)
	}
	version := intoText[struct {
		Data []struct{ Version, Changes int64 }
	}](t, out).Data[0]
	if version.Changes != 1 {
		t.Errorf("%+v", version)
	}
	if status, out, errs := sluice(t, s.cli(), "config", "diff", fmt.Sprint(version.Version)); status != 0 || !strings.HasPrefix(out, "+ routes.brief: ") {
		t.Error(status, out, errs)
	}
	if status, out, errs := sluice(t, s.cli(), "config", "rollback", fmt.Sprint(version.Version-1)); status != 0 {
		t.Error(out, errs)
	}
	s.becomes(t, "/v1/brief", 403)
}

// features of plans open routes that ask for them, and no others.
func (s *stack) features(t *testing.T) {
	t.Helper()
	give := func(plan string) {
		address := s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/plans/" + plan
		p := into[map[string]any](t, call(t, http.MethodGet, address, s.dev["SLUICE_ADMIN_KEY"], nil))
		p["features"] = []string{"beta"}
		s.put(t, "plans/"+plan, p)
	}
	give("pro")
	s.put(t, "routes/beta", map[string]any{"path": "/v1/beta", "respond": map[string]any{"status": 200}, "auth": []string{"key"}, "feature": "beta"})
	key := s.dev["SLUICE_API_KEY"]
	s.accepted(t, key)
	eventually(t, "the route is there", func() error { return s.oneOf("/v1/beta", "", 401) })
	wantError(t, call(t, http.MethodGet, s.url("/v1/beta"), key, nil), 403, "BILLING_003")
	give("local")
	eventually(t, "the plan has the feature", func() error { return s.oneOf("/v1/beta", key, 200) })
}

// unlimited lets one address make as many requests as it likes.
func (s *stack) unlimited(t testing.TB) {
	t.Helper()
	address := s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/config"
	d, etag := s.reconfigure(t, func(d map[string]any) { d["anonymous_per_minute"] = 1 << 24 })
	wantStatus(t, call(t, http.MethodPut, address, s.dev["SLUICE_ADMIN_KEY"], d, "If-Match", etag), http.StatusPreconditionFailed)
}

// reconfigure changes the configuration and waits until every edge has it; it returns the
// new one, and the ETag of the old.
func (s *stack) reconfigure(t testing.TB, change func(map[string]any)) (document map[string]any, etag string) {
	t.Helper()
	address := s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/config"
	r := call(t, http.MethodGet, address, s.dev["SLUICE_ADMIN_KEY"], nil)
	document, etag = into[struct{ Document map[string]any }](t, r).Document, r.Header.Get("ETag")
	change(document)
	wantStatus(t, call(t, http.MethodPut, address, s.dev["SLUICE_ADMIN_KEY"], document, "If-Match", etag), http.StatusOK)
	s.held(t)
	return document, etag
}
