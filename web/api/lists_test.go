package api

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// Every list is paged in the same way.
func TestLists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.bodies(t) // makes a key and an invited user
	session, admin := bearer(b.seeded.SessionToken), bearer(b.seeded.AdminKey)
	account := "/admin/v1/accounts/" + b.seeded.Account
	if w, got := call(b.admin, "POST", "/admin/v1/accounts", `{"name":"B","plan":"pro"}`, admin); w.Code != 201 {
		t.Fatal(got)
	}
	invoices := `{"invoices":[` + invoice("1") + `,` + invoice("2") + `]}`
	if w, got := call(b.admin, "POST", account+"/invoices", invoices, admin); w.Code != 200 {
		t.Fatal(got)
	}
	for _, l := range []struct {
		h    http.Handler
		path string
		with header
	}{
		{b.public, "/v1/auth/keys", session},
		{b.public, "/v1/users", session},
		{b.public, "/v1/billing/invoices", session},
		{b.admin, "/admin/v1/accounts", admin},
		{b.admin, account + "/keys", admin},
		{b.admin, account + "/invoices", admin},
		{b.admin, "/admin/v1/audit", admin},
	} {
		page := func(query string) (int, []any, map[string]any) {
			w, got := call(l.h, "GET", l.path+query, "", l.with)
			data, _ := got["data"].([]any)
			info, _ := got["pagination"].(map[string]any)
			return w.Code, data, info
		}
		status, all, info := page("")
		total := info["total"].(float64)
		if status != 200 || info["limit"] != 50.0 || info["offset"] != 0.0 || info["has_more"] != false || float64(len(all)) != total || total < 2 {
			t.Errorf("%s: %d, %d items, %v", l.path, status, len(all), info)
		}
		if _, first, info := page("?limit=1"); len(first) != 1 || info["has_more"] != true {
			t.Errorf("%s, the first: %v %v", l.path, first, info)
		}
		if _, none, info := page("?offset=1000"); none == nil || len(none) > 0 || info["total"] != total || info["has_more"] != false {
			t.Errorf("%s, beyond the end: %v %v", l.path, none, info)
		}
		for _, bad := range []string{"?limit=0", "?limit=101", "?offset=-1", "?limit=a&offset=b"} {
			if status, _, _ := page(bad); status != 400 {
				t.Errorf("%s%s: %d", l.path, bad, status)
			}
		}
	}
}

func invoice(number string) string {
	return `{"number":"` + number + `","status":"paid","currency":"EUR","amount":1,"period_start":"2026-10-01","period_end":"2026-10-31",
		"issued_at":"2026-11-01T00:00:00Z","due_at":"2026-11-15T00:00:00Z"}`
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// The manual names every route.
func TestTheManualNamesEveryRoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	manual := ""
	for _, page := range []string{"keys", "billing", "people", "accounts"} {
		raw, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		manual += parameter.ReplaceAllString(string(raw), "{}")
	}
	routes := 0
	for _, h := range []chi.Routes{b.routes, b.admin.(chi.Routes)} {
		err := chi.Walk(h, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if strings.Contains(path, "health") || strings.Contains(path, "boom") || strings.HasPrefix(path, "/docs/") {
				return nil
			}
			routes++
			path = strings.TrimPrefix(parameter.ReplaceAllString(path, "{}"), "/admin/v1")
			line := regexp.MustCompile("`" + method + "`?[^|]* `?" + regexp.QuoteMeta(path) + "[`?]|`" + method + " " + regexp.QuoteMeta(path) + "[`?]")
			if !line.MatchString(manual) && !strings.Contains(manual, "`"+path+"` has the keys") {
				t.Errorf("%s %s is not in the manual", method, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if routes < 35 {
		t.Errorf("only %d routes were looked at", routes)
	}
}
