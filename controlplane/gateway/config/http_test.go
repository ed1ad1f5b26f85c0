package config

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// admin returns the admin routes over a database that holds small.
func admin(t *testing.T) (http.Handler, Store) {
	t.Helper()
	pool := pgtest.Pool(t)
	p := NewPublisher(Store{DB: pool}, func(d Document) error {
		if d.Products[0].Upstreams[0].Address == "${nowhere}" {
			return apierror.Invalid([]decision.Detail{{Field: "products[0].upstreams[0].address", Issue: "is not the name of an address"}})
		}
		return nil
	}, nil)
	putDoc(t, p.Store, small(), "a", 0)
	r := chi.NewRouter()
	p.Routes(r, httpapi.Adapter{})
	return r, p.Store
}

// call makes a request and decodes the answer into out.
func call(t *testing.T, h http.Handler, method, path, ifMatch string, body, out any) *httptest.ResponseRecorder {
	t.Helper()
	js, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(string(js)))
	r.Header.Set("If-Match", ifMatch)
	r = r.WithContext(identity.With(t.Context(), identity.Caller{Key: "key_of_admin"}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if out != nil {
		into(t, w, out)
	}
	return w
}

// into decodes an answer.
func into(t *testing.T, w *httptest.ResponseRecorder, out any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
}

func TestConfigOverHTTP(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	var v Version
	res := call(t, h, "GET", "/config", "", nil, &v)
	if res.Code != 200 || res.Header().Get("ETag") != `"1"` || len(Diff(v.Document, small())) != 0 {
		t.Fatalf("%d %v", res.Code, res.Header())
	}
	v.Document.AccessLog = "all"
	var got PutResult
	if res := call(t, h, "PUT", "/config?dry_run=true", `"1"`, v.Document, &got); res.Code != 200 || !got.DryRun || got.Version != 1 || len(got.Changes) != 1 {
		t.Errorf("dry run: %d %+v", res.Code, got)
	}
	if res := call(t, h, "PUT", "/config", `"1"`, v.Document, &got); res.Code != 200 || got.DryRun || got.Version != 2 || res.Header().Get("ETag") != `"2"` {
		t.Errorf("%d %+v", res.Code, got)
	}
	if now, err := s.Latest(t.Context()); err != nil || now.Author != "key_of_admin" {
		t.Errorf("%+v %v", now, err)
	}
	if res := call(t, h, "PUT", "/config", `"1"`, small(), nil); res.Code != 412 {
		t.Errorf("an outdated If-Match: %d", res.Code)
	}
}

func TestConfigThatIsRefused(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	invalid := small()
	invalid.Routes[0].Product = "voice"
	unusable := small()
	unusable.Products[0].Upstreams[0].Address = "${nowhere}"
	for what, c := range map[string]struct {
		path, ifMatch string
		body          any
		status        int
		field         string
	}{
		"not an object":     {"/config", "", []int{}, 400, "body"},
		"a fault":           {"/config", "", invalid, 400, "routes[0].product"},
		"a fault, dry":      {"/config?dry_run=true", "", invalid, 400, "routes[0].product"},
		"does not compile":  {"/config", "", unusable, 400, "products[0].upstreams[0].address"},
		"no version":        {"/config", "x", small(), 400, "If-Match"},
		"dry and outdated":  {"/config?dry_run=true", `"0"`, small(), 412, ""},
		"a note too long":   {"/config?note=" + strings.Repeat("n", 501), "", Document{Classes: small().Classes, Plans: small().Plans, Products: small().Products}, 400, "note"},
		"more than is read": {"/config", "", strings.Repeat("a", MaxBytes), 413, ""},
	} {
		var e struct {
			Error struct{ Details []decision.Detail }
		}
		res := call(t, h, "PUT", c.path, c.ifMatch, c.body, &e)
		if res.Code != c.status || (c.field != "" && (len(e.Error.Details) == 0 || e.Error.Details[0].Field != c.field)) {
			t.Errorf("%s: %d %+v", what, res.Code, e)
		}
	}
	if v, err := s.Latest(t.Context()); err != nil || v.Number != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestRoutesOverHTTP(t *testing.T) {
	t.Parallel()
	h, _ := admin(t)
	var list struct{ Data []Route }
	if res := call(t, h, "GET", "/routes", "", nil, &list); res.Code != 200 || len(list.Data) != 2 {
		t.Errorf("%d %+v", res.Code, list)
	}
	var one Route
	if res := call(t, h, "GET", "/routes/streams.get", "", nil, &one); res.Code != 200 || one.Path != "/v1/streams/{id}" {
		t.Errorf("%d %+v", res.Code, one)
	}
	if res := call(t, h, "GET", "/routes/none", "", nil, nil); res.Code != 404 {
		t.Errorf("%d", res.Code)
	}
}
