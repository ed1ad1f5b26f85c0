package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kongKey is a consumer's key in docs/from-kong.md.
const kongKey, staffKey = "Jq8vT2nL5rXw9KdPz3Bf", "Wm4yH7cQ1sVb6NgEk0Zt"

// fromKong does what docs/from-kong.md says, with a product at address in place of
// the page's, up to the import of keys.
func (s *stack) fromKong(t *testing.T, address string) (keys string) {
	t.Helper()
	pages := examples(t, "yaml")["from-kong"]
	if len(pages) != 1 {
		t.Fatalf("docs/from-kong.md has %d files of Kong's", len(pages))
	}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "kong.yml"), filepath.Join(dir, "from-kong")
	text := strings.Replace(pages[0].text, "127.0.0.1:9999", address, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	status, said, errs := sluice(t, s.cli(), "import", "kong", file, "--out", out)
	if status != 0 || !strings.Contains(said, "1 products, 4 routes, 2 keys") || !strings.Contains(said, "0 left out, 0 by hand, 3 differ, 0 ignored") {
		t.Fatal(status, said, errs)
	}
	few := filepath.Join(dir, "few.yaml") // fewer than the local stack lets an address guess
	if err := os.WriteFile(few, []byte("anonymous_per_minute: 600\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, said, errs = sluice(t, s.cli(), "apply", "--dry-run", "-f", filepath.Join(out, "sluice.yaml")); status != 2 || !strings.Contains(said, "+ routes.") {
		t.Fatal(status, said, errs)
	}
	if status, said, errs = sluice(t, s.cli(), "apply", "--wait", "--timeout", "2m", "-f", filepath.Join(out, "sluice.yaml"), "-f", few); status != 0 {
		t.Fatal(status, said, errs)
	}
	keys = filepath.Join(out, "keys.csv")
	if b, err := os.ReadFile(keys); err != nil || strings.Contains(string(b), kongKey) {
		t.Fatalf("%v %s", err, b)
	}
	return keys
}

// arrival is what a product got.
type arrival struct {
	Path   string
	Header http.Header
}

// Keys that Kong issued work at a real Envoy, in Kong's header and as bearers, with
// the limits and groups that they had, and end there.
func TestFromKong(t *testing.T) {
	t.Parallel()
	s := own(t, map[string]string{"SLUICE_EDGE_CONCURRENCY": "1"})
	got := make(chan arrival, 100)
	product := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- arrival{r.URL.Path, r.Header.Clone()} }))
	t.Cleanup(product.Close)
	own := s.dev["SLUICE_API_KEY"]
	file := s.fromKong(t, product.Listener.Addr().String())
	in := func(header, key string) func() (response, error) {
		return func() (response, error) {
			return try(http.MethodGet, s.url("/orders/7"), "", nil, header, key)
		}
	}
	becomes := func(what string, status int, ask func() (response, error)) (last response) {
		t.Helper()
		eventually(t, what, func() error {
			r, err := ask()
			last = r
			return unless(err, r, status)
		})
		return last
	}
	becomes("nothing is imported yet", 401, in("apikey", kongKey))
	status, out, errs := sluice(t, s.cli(), "key", "import", "--from", "kong", "--create-accounts", file)
	if status != 0 || out != "2 keys created, 0 unchanged, 0 skipped, 0 refused; 2 accounts created\n" {
		t.Fatal(status, out, errs)
	}
	becomes("in Kong's header", 200, in("apikey", staffKey))
	if p := <-got; p.Path != "/v2/7" || p.Header.Get("Apikey") != "" || p.Header.Get("X-Sluice-Identity") == "" {
		t.Errorf("the product got %+v", p)
	}
	becomes("as a bearer", 200, in("Authorization", "Bearer "+staffKey))
	if p := <-got; p.Header.Get("Authorization") != "" {
		t.Errorf("the product got %+v", p)
	}
	becomes("a key of ours in that header", 200, in("apikey", own))
	<-got
	if status, out, _ = sluice(t, s.cli(), "key", "import", "--from", "kong", "--create-accounts", file); status != 0 || !strings.HasPrefix(out, "0 keys created, 2 unchanged") {
		t.Errorf("again: %d %s", status, out)
	}
	s.oneCredential(t)
	s.limitsAndGroups(t, got)
	s.importedKeysEnd(t)
	s.guessesAtKeys(t)
}

// oneCredential wants requests with two credentials, or one elsewhere, refused.
func (s *stack) oneCredential(t *testing.T) {
	t.Helper()
	path := s.url("/orders/7")
	wantStatus(t, call(t, http.MethodGet, path, kongKey, nil, "apikey", staffKey), 400)
	wantStatus(t, call(t, http.MethodGet, path, "", nil, "apikey", kongKey+","+staffKey), 400)
	wantError(t, call(t, http.MethodGet, path+"?apikey="+kongKey, "", nil), 401, "authentication_required")
	wantError(t, call(t, http.MethodGet, path, "", nil, "X-API-Key", kongKey), 401, "authentication_required") // not configured
}

// limitsAndGroups wants the limit of a consumer, and the groups of a route, in force.
func (s *stack) limitsAndGroups(t *testing.T, got chan arrival) {
	t.Helper()
	for n := range 5 {
		wantStatus(t, call(t, http.MethodGet, s.url("/orders"), "", nil, "apikey", kongKey), 200)
		if p := <-got; p.Path != "/v2" {
			t.Fatalf("request %d got to %s", n, p.Path)
		}
	}
	r := call(t, http.MethodGet, s.url("/orders"), "", nil, "apikey", kongKey)
	wantError(t, r, 429, "rate_limit_exceeded")
	if limit := number(t, r, "X-RateLimit-Limit"); limit != 5 {
		t.Errorf("limit %d", limit)
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/reports/may"), "", nil, "apikey", staffKey), 200)
	if p := <-got; p.Path != "/v2/reports/may" {
		t.Errorf("the report got to %s", p.Path)
	}
}

// importedKeysEnd wants an imported key gone when it is revoked, and its successor to
// be one of ours.
func (s *stack) importedKeysEnd(t *testing.T) {
	t.Helper()
	_, out, _ := sluice(t, s.cli(), "account", "list", "--output", "json")
	accounts := map[string]string{}
	for _, a := range intoText[struct{ Data []struct{ ID, Name string } }](t, out).Data {
		accounts[a.Name] = a.ID
	}
	keyOf := func(account string) string {
		t.Helper()
		_, out, errs := sluice(t, s.cli(), "key", "list", "--account", accounts[account], "--output", "json")
		list := intoText[struct {
			Data []struct {
				ID   string `json:"id"`
				From string `json:"imported_from"`
			}
		}](t, out).Data
		if len(list) != 1 || list[0].From != "kong" {
			t.Fatalf("%s: %s %s", account, out, errs)
		}
		return list[0].ID
	}
	ask := func(key string, want int) {
		t.Helper()
		eventually(t, fmt.Sprint("a key gets ", want), func() error {
			r, err := try(http.MethodGet, s.url("/reports"), "", nil, "apikey", key)
			return unless(err, r, want)
		})
	}
	ask(kongKey, 403) // acme is not of the staff; its limit is full, and the scope comes first
	if status, _, errs := sluice(t, s.cli(), "key", "revoke", keyOf("acme")); status != 0 {
		t.Fatal(errs)
	}
	ask(kongKey, 401)
	status, out, errs := sluice(t, s.cli(), "key", "rotate", keyOf("office"), "--overlap", "1h", "--output", "json")
	if status != 0 {
		t.Fatal(errs)
	}
	ask(staffKey, 200)
	next := intoText[struct{ Key string }](t, out).Key
	if !strings.HasPrefix(next, "slk_") {
		t.Fatal("the successor is not one of ours")
	}
	ask(next, 200)
}

// guessesAtKeys wants guesses refused unread once there were too many, and keys that
// the edge knows served all the while.
func (s *stack) guessesAtKeys(t *testing.T) {
	t.Helper()
	limited := 0
	for n := range 1300 { // 600 a minute may be looked for, and two minutes begin here at most
		r := call(t, http.MethodGet, s.url("/orders/7"), "", nil, "apikey", fmt.Sprintf("a-guess-at-a-key-%06d", n))
		if r.StatusCode == http.StatusTooManyRequests {
			limited++
		} else if r.StatusCode != http.StatusUnauthorized {
			wantStatus(t, r, http.StatusUnauthorized)
		}
	}
	if limited == 0 {
		t.Error("1300 guesses were all looked for")
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/orders/7"), "", nil, "apikey", staffKey), 200)
	wantStatus(t, call(t, http.MethodGet, s.url("/orders/7"), s.dev["SLUICE_API_KEY"], nil), 200)
}
