package billing

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

func (b *bundle) call(method, path, body string) (status int, asked string, got map[string]any) {
	a := API{Store: b.store, Respond: httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	r := chi.NewRouter()
	r.Route("/admin/v1", a.AdminRoutes)
	a.Routes(r, func(scope string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = scope
				next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{Account: b.account, Key: "key_1"})))
			})
		}
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	return w.Code, asked, got
}

const importBody = `{"invoices":[{"number":"2026-1","status":"open","currency":"EUR","amount":4900,"period_start":"2026-10-01",
	"period_end":"2026-10-31","issued_at":"2026-11-01T00:00:00Z","due_at":"2026-11-15T00:00:00Z"}]}`

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	imports := "/admin/v1/accounts/" + b.account + "/invoices"
	if status, _, got := b.call("POST", imports, importBody); status != 200 || got["imported"] != 1.0 || !b.blocked(t) {
		t.Fatal(status, got)
	}
	_, _, list := b.call("GET", "/v1/billing/invoices", "")
	first := list["data"].([]any)[0].(map[string]any)
	if first["number"] != "2026-1" || first["period_start"] != "2026-10-01" || first["due_at"] != "2026-11-15T00:00:00Z" {
		t.Fatal(list)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
		scope              string
	}{
		{"GET", "/v1/billing/usage?from=2026-11-01&to=2026-11-02", "", 200, "billing:read"},
		{"GET", "/v1/billing/usage?from=x", "", 400, "billing:read"},
		{"GET", "/v1/billing/usage?granularity=minute&group_by=product,route,key,status&from=2026-11-21T11:00:00Z&to=2026-11-21", "", 200, "billing:read"},
		{"GET", "/v1/billing/usage?granularity=week", "", 400, "billing:read"},
		{"GET", "/v1/billing/invoices?status=open&limit=1", "", 200, "billing:read"},
		{"GET", "/v1/billing/invoices?status=late&limit=0", "", 400, "billing:read"},
		{"GET", "/v1/billing/subscription", "", 200, "billing:read"},
		{"PATCH", "/v1/billing/subscription", `{"plan":"pro"}`, 200, "billing:write"},
		{"PATCH", "/v1/billing/subscription", `{"plan":"local"}`, 400, "billing:write"},
		{"PATCH", "/v1/billing/subscription", `{}`, 400, "billing:write"},
		{"POST", imports, `{"invoices":[{"period_start":"31.10.2026"}]}`, 400, ""},
		{"POST", imports, `{"invoices":[{"x":1}]}`, 400, ""},
		{"GET", imports, "", 200, ""},
		{"PATCH", "/admin/v1/invoices/" + first["id"].(string), `{"status":"paid"}`, 200, ""},
		{"PATCH", "/admin/v1/invoices/inv_0", `{"status":"paid"}`, 404, ""},
		{"GET", "/admin/v1/plans", "", 200, ""},
		{"PATCH", "/admin/v1/plans/local", `{"self_serve":true}`, 200, ""},
		{"PATCH", "/admin/v1/plans/local", `{}`, 400, ""},
		{"PATCH", "/v1/billing/subscription", `{"plan":"local"}`, 200, "billing:write"},
	} {
		if status, asked, got := b.call(c.method, c.path, c.body); status != c.want || asked != c.scope {
			t.Errorf("%s %s %s: %d (asked for %q) %v, want %d", c.method, c.path, c.body, status, asked, got, c.want)
		}
	}
	if b.blocked(t) {
		t.Error("paid, and still blocked")
	}
}
