package apikeys

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// serve answers as a caller with scopes in account.
func serve(s Store, scopes ...string) http.Handler {
	a := API{Store: s, Respond: httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := identity.Caller{Account: account, Key: r.Header.Get("Test-Key"), Scopes: scopes}
			next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), c)))
		})
	})
	a.Routes(r)
	r.Route("/admin/v1", a.AdminRoutes)
	a.KeyedRoutes(r)
	return r
}

func call(h http.Handler, method, path, body string) (int, map[string]any) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	var v map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &v)
	return w.Code, v
}

func TestTheRecordIsTheSpecs(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	h := serve(s, "*")
	status, made := call(h, "POST", "/v1/auth/keys", `{"name":"ci","scopes":["streams:read"],"expires_in_days":90}`)
	if status != 201 {
		t.Fatal(status, made)
	}
	id, text := made["id"].(string), made["key"].(string)
	want := map[string]any{"id": id, "key": text, "name": "ci", "scopes": []any{"streams:read"},
		"expires_at": "2027-02-19T12:00:00Z", "created_at": "2026-11-21T12:00:00Z", "last_used_at": nil, "last_used_ip": nil}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	delete(want, "key")
	if status, got := call(h, "GET", "/v1/auth/keys/"+id, ""); status != 200 || !cmp.Equal(want, got) {
		t.Errorf("%d %s", status, cmp.Diff(want, got))
	}
	if _, list := call(h, "GET", "/v1/auth/keys", ""); !cmp.Equal([]any{want}, list["data"]) {
		t.Errorf("%v", list)
	}
	want["name"] = "new"
	if status, got := call(h, "PATCH", "/v1/auth/keys/"+id, `{"name":"new"}`); status != 200 || !cmp.Equal(want, got) {
		t.Errorf("%d %s", status, cmp.Diff(want, got))
	}
	if status, got := call(h, "DELETE", "/v1/auth/keys/"+id, ""); status != 204 || got != nil {
		t.Errorf("%d %v", status, got)
	}
	if status, _ := call(h, "GET", "/v1/auth/keys/"+id, ""); status != 404 {
		t.Errorf("%d after the end", status)
	}
}

func TestLifetimes(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	h := serve(s, "*")
	for days, want := range map[string]any{
		``:                         "2027-02-19T12:00:00Z",
		`,"expires_in_days":1`:     "2026-11-22T12:00:00Z",
		`,"expires_in_days":null`:  nil,
		`,"expires_in_days":3650`:  "2036-11-18T12:00:00Z",
		`,"expires_in_days":0`:     400,
		`,"expires_in_days":-1`:    400,
		`,"expires_in_days":3651`:  400,
		`,"expires_in_days":1.5`:   400,
		`,"expires_in_days":"90"`:  400,
		`,"expires_in_days":1e400`: 400,
	} {
		status, got := call(h, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"]`+days+`}`)
		if status != 201 && status != want || status == 201 && got["expires_at"] != want {
			t.Errorf("%q: %d %v, want %v", days, status, got, want)
		}
	}
}

func TestLimitsOfKeys(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	h := serve(s, "*")
	atEdges := func(made map[string]any) uint32 {
		t.Helper()
		r, _ := atEdge(t, db, made["key"].(string))
		return r.Limit
	}
	for _, c := range []struct {
		value string
		want  any // the record's field, or the status
	}{
		{`1`, 1.0}, {`1000000000`, 1e9}, {`null`, nil}, {`0`, 400}, {`-1`, 400}, {`1.5`, 400}, {`1000000001`, 400}, {`"9"`, 400}, {`1e99`, 400},
	} {
		_, plain := call(h, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"]}`)
		id := plain["id"].(string)
		made, got := call(h, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"],"rate_limit_per_minute":`+c.value+`}`)
		changed, after := call(h, "PATCH", "/v1/auth/keys/"+id, `{"rate_limit_per_minute":`+c.value+`}`)
		if c.want == 400 {
			if made != 400 || changed != 400 {
				t.Errorf("%s: %d and %d, want 400", c.value, made, changed)
			}
			continue
		}
		want, _ := c.want.(float64)
		if made != 201 || changed != 200 || got["rate_limit_per_minute"] != c.want || after["rate_limit_per_minute"] != c.want || after["name"] != "k" {
			t.Errorf("%s: %d %v; %d %v", c.value, made, got, changed, after)
		}
		if atEdges(plain) != uint32(want) || atEdges(got) != uint32(want) {
			t.Errorf("%s: edges have %d and %d", c.value, atEdges(plain), atEdges(got))
		}
	}
	if status, _ := call(h, "PATCH", "/v1/auth/keys/"+s.mustCreate(t, account, "streams:read").ID, `{}`); status != 400 {
		t.Errorf("a change of nothing: %d", status)
	}
}

func TestTheSuccessorHasTheLimit(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	h := serve(s, "*")
	_, k := call(h, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"],"rate_limit_per_minute":7}`)
	if _, next := call(h, "POST", "/v1/auth/keys/"+k["id"].(string)+"/rotate", ``); next["rate_limit_per_minute"] != 7.0 {
		t.Fatal(next)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	k := s.mustCreate(t, account, "streams:read")
	foreign := s.mustCreate(t, other, "streams:read")
	for _, c := range []struct {
		method, path, body string
		want               int
		code               string
	}{
		{"POST", "", `{"name":"","scopes":["x:y"],"expires_in_days":0}`, 400, "invalid_request"},
		{"POST", "", `{"name":"k","scopes":["clips:write"]}`, 403, "AUTH_002"},
		{"POST", "", `{"name":"k","scopes":["*"]}`, 403, "AUTH_002"},
		{"POST", "", `not json`, 400, "invalid_request"},
		{"POST", "", strings.Repeat(" ", bodyLimit+1), 413, "request_too_large"},
		{"GET", "?limit=0", ``, 400, "invalid_request"},
		{"GET", "/" + foreign.ID, ``, 404, "not_found"},
		{"GET", "/key_nothing", ``, 404, "not_found"},
		{"PATCH", "/" + k.ID, `{"scopes":["*"]}`, 400, "invalid_request"},
		{"PATCH", "/" + foreign.ID, `{"name":"x"}`, 404, "not_found"},
		{"DELETE", "/" + foreign.ID, ``, 404, "not_found"},
		{"POST", "/" + foreign.ID + "/rotate", ``, 404, "not_found"},
		{"POST", "/" + k.ID + "/rotate", `{"overlap_seconds":604801}`, 400, "invalid_request"},
		{"POST", "/" + k.ID + "/rotate", `{"overlap_seconds":-1}`, 400, "invalid_request"},
	} {
		status, got := call(serve(s, "streams:*"), c.method, "/v1/auth/keys"+c.path, c.body)
		e, _ := got["error"].(map[string]any)
		if status != c.want || e["code"] != c.code {
			t.Errorf("%s %s %.40s: %d %v, want %d %s", c.method, c.path, c.body, status, e, c.want, c.code)
		}
	}
	_, got := call(serve(s, "streams:*"), "POST", "/v1/auth/keys", `{"name":"","scopes":["x:y"],"expires_in_days":0}`)
	if e := got["error"].(map[string]any); len(e["details"].([]any)) != 3 {
		t.Errorf("not every bad field is named: %v", e)
	}
}

func TestRotateOverHTTP(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	k := s.mustCreate(t, account, "streams:read")
	status, next := call(serve(s, "*"), "POST", "/v1/auth/keys/"+k.ID+"/rotate", `{"overlap_seconds":60}`)
	if status != 201 || next["key"] == "" || next["id"] == k.ID {
		t.Fatal(status, next)
	}
	if old, err := s.Get(t.Context(), account, k.ID); err != nil || !old.ExpiresAt.Equal(now.Add(time.Minute)) {
		t.Fatal(old, err)
	}
	if status, _ := call(serve(s, "*"), "POST", "/v1/auth/keys/"+k.ID+"/rotate", ``); status != 201 {
		t.Fatalf("without a body: %d", status)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	k := s.mustCreate(t, account, "streams:read")
	ask := func(id string) (int, string) {
		r := httptest.NewRequest("GET", "/v1/auth/validate", nil)
		r.Header.Set("Test-Key", id)
		w := httptest.NewRecorder()
		serve(s).ServeHTTP(w, r)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	status, body := ask(k.ID)
	want := `{"valid":true,"key_id":"` + k.ID + `","scopes":["streams:read"],"expires_at":"2026-11-21T13:00:00Z"}`
	if status != 200 || body != want {
		t.Errorf("%d %s", status, body)
	}
	for _, id := range []string{"", "sess_0000000000001", "key_0000000000000"} {
		if status, _ := ask(id); status != 401 {
			t.Errorf("%q: %d", id, status)
		}
	}
}

func TestAdminReachesEveryAccount(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	h := serve(s)
	status, made := call(h, "POST", "/admin/v1/accounts/"+other+"/keys", `{"name":"k","scopes":["*"],"expires_at":"2026-11-21T12:00:05Z"}`)
	if status != 201 || made["expires_at"] != "2026-11-21T12:00:05Z" {
		t.Fatal(status, made)
	}
	id := made["id"].(string)
	if status, next := call(h, "POST", "/admin/v1/keys/"+id+"/rotate", `{"overlap_seconds":1}`); status != 201 {
		t.Error(status, next)
	}
	if _, list := call(h, "GET", "/admin/v1/accounts/"+other+"/keys", ""); len(list["data"].([]any)) != 2 {
		t.Error(list)
	}
	if status, _ := call(h, "GET", "/admin/v1/accounts/acct_nope/keys", ""); status != 404 {
		t.Errorf("keys of nobody: %d", status)
	}
	if status, _ := call(h, "DELETE", "/admin/v1/keys/"+id, ""); status != 204 {
		t.Error(status)
	}
	if status, _ := call(h, "DELETE", "/admin/v1/keys/"+id, ""); status != 404 {
		t.Error("revoked twice:", status)
	}
	both := `{"name":"k","scopes":["*"],"expires_at":"2026-11-21T12:00:05Z","expires_in_days":3}`
	if status, _ := call(h, "POST", "/admin/v1/accounts/"+other+"/keys", both); status != 400 {
		t.Error("two ends:", status)
	}
}

func FuzzCreateRequest(f *testing.F) {
	f.Add(`{"name":"k","scopes":["a:b"],"expires_in_days":90}`)
	f.Add(`{"name":"k","scopes":[],"expires_in_days":null,"expires_at":"2026-11-21T12:00:05Z"}`)
	f.Add(`{"expires_in_days":1e5}`)
	f.Fuzz(func(t *testing.T, s string) {
		var body adminCreateRequest
		if httpapi.Unmarshal([]byte(s), &body) != nil {
			return
		}
		end, details := body.Days.end(now)
		if len(details) == 0 && end != nil && (!end.After(now) || end.After(now.Add(MaxDays*24*time.Hour))) {
			t.Fatalf("%v", end)
		}
	})
}
