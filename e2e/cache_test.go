package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// kept is a stack whose product answers in ways that caches must tell apart, and counts.
type kept struct {
	*stack
	asked atomic.Int64
}

// ServeHTTP is the product: what it answers says the how-manyth answer it is and to whom.
// The query says what headers it has, its status and how long its body is.
func (k *kept) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := k.asked.Add(1)
	q := r.URL.Query()
	for name, values := range q {
		if header, ok := strings.CutPrefix(name, "h."); ok {
			for _, v := range values {
				w.Header().Add(header, v)
			}
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-RateLimit-Limit", "the product's")
	w.Header().Set("X-Request-Id", "the product's")
	if r.Header.Get("If-None-Match") != "" && r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if status, err := strconv.Atoi(q.Get("status")); err == nil {
		w.WriteHeader(status)
	}
	caller := "nobody"
	if m := regexp.MustCompile(`;a=(\w+)`).FindStringSubmatch(r.Header.Get("X-Sluice-Identity")); m != nil {
		caller = m[1]
	}
	size, _ := strconv.Atoi(q.Get("size"))
	fmt.Fprintf(w, "answer %d for %s in %q%s", n, caller, r.Header.Get("Accept-Language"), strings.Repeat(".", size))
}

// newKept gives a stack routes /v1/kept/NAME of more settings each.
func newKept(t *testing.T, s *stack, routes map[string]map[string]any) *kept {
	t.Helper()
	k := &kept{stack: s}
	product := httptest.NewServer(k)
	t.Cleanup(product.Close)
	k.change(t, "products/kept", map[string]any{"retries": 0, "upstreams": []any{map[string]any{"address": product.Listener.Addr().(*net.TCPAddr).String()}}})
	for name, r := range routes {
		k.route(t, name, r)
	}
	k.held(t)
	return k
}

// route configures one, and waits for nobody.
func (k *kept) route(t testing.TB, name string, with map[string]any) {
	t.Helper()
	r := map[string]any{"path": "/v1/kept/" + name, "product": "kept"}
	for field, v := range with {
		r[field] = v
	}
	k.change(t, "routes/kept."+name, r)
}

// get asks for what is below /v1/kept/, and says how it was answered.
func (k *kept) get(t testing.TB, key, path string, headers ...string) response {
	t.Helper()
	return call(t, http.MethodGet, k.url("/v1/kept/"+path), key, nil, headers...)
}

// account makes an account, and keys of it that the edge knows.
func (k *kept) account(t testing.TB, keys int) (id string, list []string, ids []string) {
	t.Helper()
	admin, credential := k.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts", k.dev["SLUICE_ADMIN_KEY"]
	r := call(t, http.MethodPost, admin, credential, map[string]any{"name": "tenant", "plan": "local"})
	wantStatus(t, r, http.StatusCreated)
	id = into[struct{ ID string }](t, r).ID
	for range keys {
		r := call(t, http.MethodPost, admin+"/"+id+"/keys", credential, map[string]any{"name": "k", "scopes": []string{"streams:read"}})
		wantStatus(t, r, http.StatusCreated)
		made := into[struct{ ID, Key string }](t, r)
		k.known(t, made.Key)
		list, ids = append(list, made.Key), append(ids, made.ID)
	}
	return id, list, ids
}

// Nothing of what a cache keeps ever reaches anybody else than whom it was made for, and
// nobody gets anything from it who may not call, or has called too often.
func TestAnswersAreKeptForTheirCallers(t *testing.T) {
	t.Parallel()
	cache := func(more map[string]any) map[string]any {
		c := map[string]any{"ttl": "1h", "vary": []string{"Accept-Language"}, "max_bytes": 1 << 20}
		for field, v := range more {
			c[field] = v
		}
		return map[string]any{"cache": c}
	}
	open := cache(nil)
	open["auth"] = []string{"none"}
	k := newKept(t, lentStack(t), map[string]map[string]any{"mine": cache(nil), "key": cache(map[string]any{"per": "key"}), "all": cache(map[string]any{"per": "nobody"}), "open": open})
	one, keys, ids := k.account(t, 2)
	two, others, _ := k.account(t, 1)

	// An account has its own answers, whichever of its keys asks.
	first := k.get(t, keys[0], "mine?a=1")
	again := k.get(t, keys[1], "mine?a=1")
	other := k.get(t, others[0], "mine?a=1")
	if again.body != first.body || !strings.Contains(first.body, one) || strings.Join(again.Header.Values("Cache-Status"), ", ") != "sluice; hit" || again.Header.Get("Age") == "" {
		t.Errorf("%q then %q %v", first.body, again.body, again.Header)
	}
	if !strings.Contains(other.body, two) || other.Header.Get("Cache-Status") != "sluice; fwd=miss; stored" {
		t.Errorf("another account got %q %v", other.body, other.Header)
	}
	// What is of the request is of the present one.
	wantHeaders(t, again)
	if id := again.Header.Get("X-Request-Id"); id == "" || id == first.Header.Get("X-Request-Id") || len(again.Header.Values("X-Request-Id")) != 1 {
		t.Errorf("request ids %q, then %q", first.Header.Get("X-Request-Id"), again.Header.Values("X-Request-Id"))
	}
	if a, b := number(t, first, "X-RateLimit-Remaining"), number(t, again, "X-RateLimit-Remaining"); a-b < 1 {
		t.Errorf("%d requests are left, then %d", a, b)
	}
	if got := k.recordedAs(t, again); got.Route != "kept.mine" || got.Account != one {
		t.Errorf("recorded %+v", got)
	}

	// Keys of a route by key, and answers of nobody.
	if a, b, c := k.get(t, keys[0], "key"), k.get(t, keys[1], "key"), k.get(t, keys[0], "key"); a.body == b.body || a.body != c.body {
		t.Errorf("by key: %q, %q, %q", a.body, b.body, c.body)
	}
	for said, shared := range map[string]bool{"": false, "max-age=60": false, "public,max-age=60": true, "s-maxage=60": true, "private": false} {
		path := "all?said=1&h.cache-control=" + said
		a, b := k.get(t, keys[0], path), k.get(t, others[0], path)
		if (a.body == b.body) != shared {
			t.Errorf("of nobody, %q: %q, %q", said, a.body, b.body)
		}
	}
	if a, b, c := k.get(t, "", "open"), k.get(t, "", "open"), k.get(t, keys[0], "open"); a.body != b.body || c.body == a.body || c.Header.Get("Cache-Status") != "sluice; fwd=bypass" {
		t.Errorf("open: %q, %q, with a credential that nobody judges %q %v", a.body, b.body, c.body, c.Header)
	}

	// What must not be kept, or is another answer.
	for name, c := range map[string]struct {
		path    string
		headers [2][]string
		same    bool
	}{
		"as it is": {"mine?n=1", [2][]string{}, true}, "fresh for no time": {"mine?n=2&h.cache-control=max-age=0", [2][]string{}, false}, "private": {"mine?n=3&h.cache-control=private", [2][]string{}, false},
		"no-store": {"mine?n=4&h.cache-control=no-store", [2][]string{}, false}, "no-cache": {"mine?n=5&h.cache-control=no-cache", [2][]string{}, false},
		"a cookie set": {"mine?n=6&h.set-cookie=a=b", [2][]string{}, false}, "a cookie sent": {"mine?n=7", [2][]string{{"Cookie", "a=b"}, {"Cookie", "a=b"}}, false},
		"varies by what is told apart": {"mine?n=8&h.vary=Accept-Language", [2][]string{{"Accept-Language", "de"}, {"Accept-Language", "de"}}, true},
		"another language":             {"mine?n=9&h.vary=Accept-Language", [2][]string{{"Accept-Language", "de"}, {"Accept-Language", "fr"}}, false},
		"varies by another header":     {"mine?n=10&h.vary=X-Shop", [2][]string{}, false}, "varies by all": {"mine?n=11&h.vary=*", [2][]string{}, false},
		"an error": {"mine?n=12&status=500", [2][]string{}, false}, "not found": {"mine?n=13&status=404", [2][]string{}, false},
		"a range": {"mine?n=14", [2][]string{nil, {"Range", "bytes=0-1"}}, false}, "asked anew": {"mine?n=15", [2][]string{nil, {"Cache-Control", "no-cache"}}, false},
		"not to be kept": {"mine?n=16", [2][]string{{"Cache-Control", "no-store"}, nil}, false}, "a megabyte": {"mine?n=17&size=1000000", [2][]string{}, true}, "too large": {"mine?n=18&size=1048576", [2][]string{}, false},
	} {
		a, b := k.get(t, keys[0], c.path, c.headers[0]...), k.get(t, keys[0], c.path, c.headers[1]...)
		if (a.body == b.body) != c.same || c.same != (b.Header.Get("Cache-Status") == "sluice; hit") {
			t.Errorf("%s: %.40q, then %.40q: %v", name, a.body, b.body, b.Header)
		}
		if len(a.body) != len(b.body) && c.same {
			t.Errorf("%s: %d bytes, then %d", name, len(a.body), len(b.body))
		}
	}
	if a, b := k.get(t, keys[0], "mine?x=1&y=2"), k.get(t, keys[0], "mine?y=2&x=1"); a.body == b.body {
		t.Errorf("the order of a query: %q", a.body)
	}

	// HEAD and conditions are answered from what GET has kept. Go asks for compressed
	// answers of GET alone, unless it is told.
	plain := []string{"Accept-Encoding", "identity"}
	tagged := k.get(t, keys[0], `mine?t=1&h.etag="v1"`, plain...)
	head := call(t, http.MethodHead, k.url(`/v1/kept/mine?t=1&h.etag="v1"`), keys[0], nil, plain...)
	if head.StatusCode != 200 || head.body != "" || head.Header.Get("Content-Length") != strconv.Itoa(len(tagged.body)) || head.Header.Get("Cache-Status") != "sluice; hit" {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
	if r := k.get(t, keys[0], `mine?t=1&h.etag="v1"`, "Accept-Encoding", "identity", "If-None-Match", `W/"v1"`); r.StatusCode != 304 || r.body != "" || r.Header.Get("ETag") != `"v1"` {
		t.Errorf("known: %d %v", r.StatusCode, r.Header)
	}
	if r := k.get(t, keys[0], `mine?t=1&h.etag="v1"`, "Accept-Encoding", "identity", "If-None-Match", `"v0"`); r.StatusCode != 200 || r.body != tagged.body {
		t.Errorf("outdated: %d %q", r.StatusCode, r.body)
	}

	// A key that is revoked gets nothing any more, nor does nobody, and who asks too
	// often is refused although the product would not be asked.
	wantStatus(t, call(t, http.MethodDelete, k.dev["SLUICE_ADMIN_URL"]+"/admin/v1/keys/"+ids[0], k.dev["SLUICE_ADMIN_KEY"], nil), 204)
	eventually(t, "the key is revoked", func() error {
		r, err := try(http.MethodGet, k.url("/v1/kept/mine?a=1"), keys[0], nil)
		return unless(err, r, 401)
	})
	wantStatus(t, k.get(t, "", "mine?a=1"), 401)
	if r := k.get(t, keys[1], "mine?a=1"); r.body != first.body {
		t.Errorf("%q", r.body)
	}
	k.change(t, "classes/rare", map[string]any{"per_minute": 3})
	limited := cache(nil)
	limited["class"] = "rare"
	k.route(t, "rare", limited)
	k.held(t)
	before, counted := k.asked.Load(), k.countedOf(t, "kept.rare")
	for i := range 5 {
		if r := k.get(t, keys[1], "rare"); (r.StatusCode == 429) != (i >= 3) {
			t.Errorf("request %d: %d", i, r.StatusCode)
		}
	}
	if n := k.asked.Load() - before; n != 1 {
		t.Errorf("the product was asked %d times", n)
	}

	// A purge, and a change of the product, throw away what is kept.
	if status, out, errs := sluice(t, k.env, "cache", "purge", "kept.mine"); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	eventually(t, "what is kept is purged", func() error {
		if r := k.get(t, keys[1], "mine?a=1"); r.body == first.body {
			return fmt.Errorf("still %q", r.body)
		}
		return nil
	})
	k.route(t, "mine", cache(nil)) // as a document that knows of no purge would say
	eventually(t, "the old answer stays away", func() error {
		a, b := k.get(t, keys[1], "mine?a=1"), k.get(t, keys[1], "mine?a=1")
		if a.body == first.body {
			t.Fatalf("what was purged is back: %q", a.body)
		}
		if a.body != b.body {
			return fmt.Errorf("not kept yet")
		}
		return nil
	})
	for result, n := range k.countedOf(t, "kept.rare") {
		if want := map[string]float64{"hit": 2, "miss": 1, "stored": 1}[result]; n-counted[result] != want {
			t.Errorf("the metrics have %v more of %s, want %v", n-counted[result], result, want)
		}
	}
}

// countedOf is what the edge's metrics have counted of a route's answers, by what became of
// them.
func (k *kept) countedOf(t *testing.T, route string) map[string]float64 {
	t.Helper()
	text, all := scrape(t, "http://"+k.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics"), map[string]float64{}
	for _, result := range []string{"hit", "miss", "stored"} {
		all[result] = max(0, line(t, text, `sluice_edge_cache_requests_total{result="`+result+`",route="`+route+`"}`))
	}
	return all
}

// Whoever asks for ever new addresses fills its own share of the room and no more, and
// others' answers stay where they are.
func TestACacheHasBoundedRoom(t *testing.T) {
	t.Parallel()
	k := newKept(t, own(t, nil), map[string]map[string]any{"mine": {"cache": map[string]any{"ttl": "1h", "max_bytes": 1 << 20}}})
	_, keys, _ := k.account(t, 1)
	_, floods, _ := k.account(t, 1)
	var mine []string
	for i := range 20 {
		mine = append(mine, k.get(t, keys[0], fmt.Sprintf("mine?mine=%d", i)).body)
	}
	const each, n, share = 200_000, 400, 16 * (4 << 20) * 3 / 8
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				r, err := try(http.MethodGet, k.url(fmt.Sprintf("/v1/kept/mine?flood=%d&size=%d", i, each)), floods[0], nil)
				if err := unless(err, r, 200); err != nil || len(r.body) < each {
					t.Error(err, len(r.body))
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	text := scrape(t, "http://"+k.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics")
	m := regexp.MustCompile(`(?m)^sluice_edge_cache_bytes (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no bytes in the metrics")
	}
	bytes, _ := strconv.ParseFloat(m[1], 64)
	t.Logf("%d answers of %d bytes asked for, %.0f bytes are kept", n, each, bytes)
	if bytes < share/4 || bytes > share+1<<20 {
		t.Errorf("%.0f bytes are kept, want at most %d", bytes, share)
	}
	for i, body := range mine {
		if r := k.get(t, keys[0], fmt.Sprintf("mine?mine=%d", i)); r.body != body {
			t.Errorf("another account's answer %d is gone: %v", i, r.Header)
		}
	}
}
