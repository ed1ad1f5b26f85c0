package accounts

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
)

func serve(b bundle) func(method, path, body string) (int, map[string]any) {
	r := chi.NewRouter()
	a := API{Store: b.store,
		CheckPassword: func(p string) (d []decision.Detail) {
			if p == "" {
				d = append(d, decision.Detail{Field: "password"})
			}
			return d
		},
		HashPassword: func(_ context.Context, p string) (string, error) { return "hash of " + p, nil },
	}
	r.Route("/admin/v1", a.AdminRoutes)
	return func(method, path, body string) (int, map[string]any) {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(method, "/admin/v1/accounts"+path, strings.NewReader(body)))
		var v map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &v)
		return w.Code, v
	}
}

func TestAdminAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := serve(b)
	id := "/" + b.account.ID
	for _, c := range []struct {
		method, path, body string
		want               int
		field              string
		value              any
	}{
		{"POST", "", `{"name":"B","plan":"pro"}`, 201, "plan", "pro"},
		{"POST", "", `{"name":"B","plan":"pro","operator":true}`, 400, "", nil},
		{"GET", id, ``, 200, "name", "A"},
		{"GET", "/acct_0", ``, 404, "", nil},
		{"GET", "?limit=1000", ``, 400, "", nil},
		{"PATCH", id, `{"name":"C"}`, 200, "name", "C"},
		{"PATCH", id, `{"name":"","plan":""}`, 400, "", nil},
		{"PATCH", id, `{"plan":"gold"}`, 400, "", nil},
		{"PUT", id + "/limits/events", `{"per_minute":7}`, 200, "per_minute", 7.0},
		{"PUT", id + "/limits/events", `{}`, 400, "", nil},
		{"GET", "/acct_0/limits", ``, 404, "", nil},
		{"DELETE", id + "/limits/events", ``, 204, "", nil},
		{"DELETE", id + "/limits/events", ``, 404, "", nil},
		{"POST", id + "/users", `{"email":"A@b.example","role":"admin","password":"p"}`, 201, "email", "a@b.example"},
		{"POST", id + "/users", `{"email":"a@b.example","role":"admin","password":"p"}`, 409, "", nil},
	} {
		status, got := call(c.method, c.path, c.body)
		if status != c.want || c.field != "" && got[c.field] != c.value {
			t.Errorf("%s %s %s: %d %v, want %d", c.method, c.path, c.body, status, got, c.want)
		}
	}
	_, got := call("POST", id+"/users", `{"email":"a","role":"b"}`)
	if e := got["error"].(map[string]any); len(e["details"].([]any)) != 3 {
		t.Errorf("not every bad field is named: %v", e)
	}
	if _, got := call("GET", "?limit=1", ""); got["pagination"].(map[string]any)["total"] != 2.0 {
		t.Errorf("%v", got)
	}
}
