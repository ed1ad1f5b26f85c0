package webhooks_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// api is the service over HTTP, as a caller with scopes sees it.
type api struct {
	*webhooktest.Bundle
	handler http.Handler
}

var everything = identity.Caller{Account: webhooktest.Account, Key: "key_1", Scopes: []string{"webhooks:read", "webhooks:write"}}

func setup(t *testing.T) api {
	t.Helper()
	b := webhooktest.New(t, nil)
	return api{b, serve(b.Service, everything)}
}

func serve(s *webhooks.Service, c identity.Caller) http.Handler {
	a := httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), c)))
		})
	})
	s.Routes(r, a)
	s.InternalRoutes(r, a)
	return r
}

type object = map[string]any

// call returns status and body of a request, after comparing the answer with
// the OpenAPI document; a body that is not text is sent as JSON.
func (a api) call(method, path string, body any) (int, object) {
	return call(a.T, a.handler, method, path, body)
}

func call(t testing.TB, h http.Handler, method, path string, body any) (int, object) {
	t.Helper()
	raw, isText := body.(string)
	if body != nil && !isText {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(raw))
	h.ServeHTTP(w, r)
	checkContract(t, r, w)
	var v object
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	return w.Code, v
}

func (a api) must(want int, method, path string, body any) object {
	a.T.Helper()
	status, v := a.call(method, path, body)
	if status != want {
		a.T.Fatalf("%s %s: %d, want %d: %v", method, path, status, want, v)
	}
	return v
}

// problems returns the fields that an error names with what is wrong.
func problems(v object) map[string]string {
	out := map[string]string{}
	list, _ := v["error"].(object)["details"].([]any)
	for _, d := range list {
		out[d.(object)["field"].(string)] = d.(object)["issue"].(string)
	}
	return out
}

func valid(url string) object {
	return object{"url": url, "events": []string{"stream.started"}, "secret": webhooktest.Secret, "description": "mine"}
}

func TestSubscriptionIsTheSpecs(t *testing.T) {
	t.Parallel()
	a := setup(t)
	made := a.must(201, "POST", "/v1/webhooks", valid("https://example.com/hook"))
	if made["secret"] != webhooktest.Secret || made["status"] != "active" || !strings.HasPrefix(made["id"].(string), "wh_") {
		t.Errorf("%v", made)
	}
	path := "/v1/webhooks/" + made["id"].(string)
	delete(made, "secret")
	if d := cmp.Diff(made, a.must(200, "GET", path, nil)); d != "" {
		t.Errorf("read again, without the secret: %s", d)
	}
	changed := a.must(200, "PATCH", path, object{"description": "ours", "events": []string{"stream.*"}})
	if changed["description"] != "ours" || changed["url"] != made["url"] || changed["events"].([]any)[0] != "stream.*" {
		t.Errorf("%v", changed)
	}
	a.must(204, "DELETE", path, nil)
	a.must(404, "GET", path, nil)
	a.must(404, "DELETE", path, nil)
	a.must(404, "PATCH", path, object{"description": "x"})
}

func TestSecretIsNotStoredInTheClear(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.must(201, "POST", "/v1/webhooks", valid("https://example.com/hook"))
	var row string
	if err := a.Pool.QueryRow(t.Context(), `SELECT encode(secret, 'escape') || url FROM webhook_subscriptions`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(row, webhooktest.Secret) {
		t.Error("the database holds the secret's text")
	}
}

func TestEveryBadFieldIsNamed(t *testing.T) {
	t.Parallel()
	a := setup(t)
	status, v := a.call("POST", "/v1/webhooks", object{
		"url": "http://10.0.0.1/", "events": []string{"stream.started", "no.such", "stream.started"}, "secret": "short",
		"description": strings.Repeat("d", 501), "retry_schedule": []int{1, 30, 300, 1800, 7200},
		"max_concurrency": 0, "rate_per_second": 5000,
	})
	want := map[string]string{
		"url": "leads to an address that is not public", "events[1]": "is not a known event", "events[2]": "is given twice",
		"secret": "is too short", "description": "is too long or has control characters", "retry_schedule[0]": "is out of range",
		"max_concurrency": "is out of range", "rate_per_second": "is out of range",
	}
	if d := cmp.Diff(want, problems(v)); status != 400 || d != "" {
		t.Errorf("%d %s", status, d)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for name, c := range map[string]struct {
		body  any
		field string
	}{
		"nothing at all":     {object{}, "url"},
		"no secret":          {object{"url": "https://example.com/", "events": []string{"*"}}, "secret"},
		"no events":          {object{"url": "https://example.com/", "events": []string{}, "secret": webhooktest.Secret}, "events"},
		"not JSON":           {"{", "body"},
		"a field of its own": {object{"url": "https://example.com/", "status": "paused"}, "status"},
		"events of one name": {`{"events":"stream.started"}`, "events"},
		"plain http":         {valid("http://example.com/"), "url"},
		"credentials":        {valid("https://user:pw@example.com/"), "url"},
		"the metadata host":  {valid("http://169.254.169.254/latest/meta-data/"), "url"},
		"a decimal address":  {valid("https://2130706433/"), "url"},
		"an odd port":        {valid("https://example.com:22/"), "url"},
		"an octal address":   {valid("https://0177.0.0.1/"), "url"},
		"a hex address":      {valid("https://0x7f000001/"), "url"},
		"a short address":    {valid("https://127.1/"), "url"},
		"a mapped address":   {valid("https://[::ffff:10.0.0.1]/"), "url"},
		"a NAT64 address":    {valid("https://[64:ff9b::a00:1]/"), "url"},
		"a 6to4 address":     {valid("https://[2002:a00:1::]/"), "url"},
		"a carrier's own":    {valid("https://100.64.0.1/"), "url"},
		"a private name":     {valid("https://db.internal/"), "url"},
		"no URL at all":      {valid("example.com/hook"), "url"},
		"a URL too long":     {valid("https://example.com/" + strings.Repeat("x", 2048)), "url"},
	} {
		status, v := a.call("POST", "/v1/webhooks", c.body)
		if _, named := problems(v)[c.field]; status != 400 || !named {
			t.Errorf("%s: %d %v", name, status, v)
		}
	}
}

func TestChangesAreCheckedLikeCreations(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.must(201, "POST", "/v1/webhooks", valid("https://example.com/"))["id"].(string)
	for field, value := range map[string]any{
		"url": "https://192.168.0.1/", "events": []string{}, "status": "disabled", "description": "\x01",
		"retry_schedule": []int{5}, "rate_per_second": -1, "max_concurrency": 257, "secret": webhooktest.Secret,
	} {
		status, v := a.call("PATCH", path, object{field: value})
		if _, named := problems(v)[field]; status != 400 || !named {
			t.Errorf("%s: %d %v", field, status, v)
		}
	}
}

func TestOthersSubscriptionsAreNotThere(t *testing.T) {
	t.Parallel()
	a := setup(t)
	id := a.must(201, "POST", "/v1/webhooks", valid("https://example.com/"))["id"].(string)
	other := serve(a.Service, identity.Caller{Account: webhooktest.Other, Scopes: []string{"*"}})
	for _, c := range []struct{ method, path string }{
		{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/test"}, {"POST", "/rotate-secret"}, {"POST", "/verify"},
		{"GET", "/deliveries"}, {"GET", "/deliveries/dlv_0000000000001"}, {"POST", "/deliveries/dlv_0000000000001/resend"},
		{"POST", "/recover"}, {"GET", "/recoveries"}, {"GET", "/recoveries/rec_1"},
	} {
		body := object{}
		switch c.path {
		case "/rotate-secret":
			body["secret"] = webhooktest.Secret
		case "/verify":
			body["signature"] = "x"
		case "/recover":
			body["since"] = "2026-01-01T00:00:00Z"
		}
		if status, v := call(t, other, c.method, "/v1/webhooks/"+id+c.path, body); status != 404 {
			t.Errorf("%s %s: %d %v", c.method, c.path, status, v)
		}
	}
	if _, v := call(t, other, "GET", "/v1/webhooks", nil); len(v["data"].([]any)) != 0 {
		t.Errorf("the other account lists %v", v)
	}
}

func TestScopesAreCheckedAgain(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for name, c := range map[string]struct {
		caller     identity.Caller
		read, make int
	}{
		"nobody":       {identity.Caller{}, 401, 401},
		"no scope":     {identity.Caller{Account: webhooktest.Account, Scopes: []string{"streams:*"}}, 403, 403},
		"read only":    {identity.Caller{Account: webhooktest.Account, Scopes: []string{"webhooks:read"}}, 200, 403},
		"write only":   {identity.Caller{Account: webhooktest.Account, Scopes: []string{"webhooks:write"}}, 403, 201},
		"the wildcard": {identity.Caller{Account: webhooktest.Account, Scopes: []string{"webhooks:*"}}, 200, 201},
	} {
		h := serve(a.Service, c.caller)
		read, _ := call(t, h, "GET", "/v1/webhooks", nil)
		made, v := call(t, h, "POST", "/v1/webhooks", valid("https://example.com/"))
		if read != c.read || made != c.make {
			t.Errorf("%s: GET %d, POST %d, want %d and %d: %v", name, read, made, c.read, c.make, v)
		}
	}
}

func TestListIsPaged(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for range 3 {
		a.must(201, "POST", "/v1/webhooks", valid("https://example.com/"))
	}
	v := a.must(200, "GET", "/v1/webhooks?limit=2&offset=1", nil)
	want := object{"total": 3.0, "limit": 2.0, "offset": 1.0, "has_more": false, "next_cursor": nil}
	if d := cmp.Diff(want, v["pagination"]); d != "" || len(v["data"].([]any)) != 2 {
		t.Errorf("%v", v)
	}
	a.must(400, "GET", "/v1/webhooks?limit=101", nil)
}

func TestCatalogueIsServed(t *testing.T) {
	t.Parallel()
	a := setup(t)
	list := a.must(200, "GET", "/v1/webhooks/event-types", nil)["data"].([]any)
	first := list[0].(object)
	if first["name"] != "stream.started" || first["schema"].(object)["type"] != "object" || first["example"].(object)["event"] != "stream.started" {
		t.Errorf("%v", first)
	}
}

func TestAccountCannotHaveTooMany(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.Service.MaxSubscriptions = 1
	a.must(201, "POST", "/v1/webhooks", valid("https://example.com/"))
	a.must(409, "POST", "/v1/webhooks", valid("https://example.com/"))
}
