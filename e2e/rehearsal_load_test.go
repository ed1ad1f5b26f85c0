package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// caller is one of a load, with a key or without; twin is another who has the same.
type caller struct{ key, twin string }

// asked is one request of a load.
type asked struct {
	caller             int
	method, path, host string
	version            string // header X-Version
	size               int
}

// what became of a request: the code with which the edge refused it, or the product.
type became struct{ id, is, took string }

// productNamed is a product that answers with its name.
func productNamed(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "product %s", name)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// rehearsed is the document of these tests.
func rehearsedDocument(one, other string) map[string]any {
	route := func(name, path, product, scope string, more map[string]any) map[string]any {
		r := map[string]any{"name": name, "path": path, "product": product}
		if scope != "" {
			r["scope"] = scope
		}
		maps.Copy(r, more)
		return r
	}
	return map[string]any{
		"include": []string{"builtin"}, "trusted_proxies": 1, "anonymous_per_minute": 60,
		"classes":  []any{map[string]any{"name": "default", "per_minute": 50}, map[string]any{"name": "bulk", "per_minute": 25, "burst": 5}},
		"products": []any{map[string]any{"name": "one", "upstream": one}, map[string]any{"name": "other", "upstream": other}},
		"routes": []any{
			route("things.list", "/things", "one", "things:read", map[string]any{"methods": []string{"GET"}}),
			route("things.v2", "/things", "other", "things:read", map[string]any{"methods": []string{"GET"}, "headers": []any{map[string]any{"name": "X-Version", "value": "2"}}}),
			route("things.create", "/things", "one", "things:write", map[string]any{"methods": []string{"POST"}, "class": "bulk"}),
			route("things.get", "/things/{id}", "one", "things:read", map[string]any{"methods": []string{"GET"}, "rewrite": map[string]any{"path": "/x/{id}"}}),
			route("files", "/files/*", "one", "files:use", map[string]any{"methods": []string{"GET", "PUT"}, "body_limit": 1000}),
			route("open", "/open", "one", "", map[string]any{"auth": []string{"none"}}),
			route("maybe", "/maybe", "one", "", map[string]any{"auth": []string{"none", "key"}}),
			route("hosted.a", "/hosted", "other", "things:read", map[string]any{"hosts": []string{"a.example"}}),
			route("hosted", "/hosted", "one", "things:read", nil),
		},
	}
}

// edits are changes of that document, by what they do.
var edits = map[string]func(d map[string]any){
	"another scope":       func(d map[string]any) { routeOf(d, "things.get")["scope"] = "things:admin" },
	"a literal below":     func(d map[string]any) { addRoute(d, "special", "/things/special", "other", "files:use") },
	"a smaller class":     func(d map[string]any) { d["classes"].([]any)[1] = map[string]any{"name": "bulk", "per_minute": 7} },
	"a smaller default":   func(d map[string]any) { d["classes"].([]any)[0] = map[string]any{"name": "default", "per_minute": 30} },
	"no PUT":              func(d map[string]any) { routeOf(d, "files")["methods"] = []string{"GET"} },
	"a deeper path":       func(d map[string]any) { addRoute(d, "deep", "/files/deep/*", "other", "things:read") },
	"fewer without a key": func(d map[string]any) { d["anonymous_per_minute"] = 10 },
	"another host": func(d map[string]any) {
		addRoute(d, "b", "/things/{id}", "other", "things:read")["hosts"] = []string{"*.example"}
	},
	"no version 2": func(d map[string]any) {
		d["routes"] = slices.DeleteFunc(d["routes"].([]any), func(r any) bool { return r.(map[string]any)["name"] == "things.v2" })
	},
	"smaller bodies":          func(d map[string]any) { routeOf(d, "files")["body_limit"] = 300 },
	"a key after all":         func(d map[string]any) { routeOf(d, "maybe")["auth"] = []string{"key"} },
	"a route that was missed": func(d map[string]any) { addRoute(d, "new", "/new", "other", "")["auth"] = []string{"none"} },
	"a class of its own":      func(d map[string]any) { routeOf(d, "things.create")["class"] = "default" },
	"no host": func(d map[string]any) {
		delete(routeOf(d, "hosted.a"), "hosts")
		delete(routeOf(d, "hosted"), "hosts")
		routeOf(d, "hosted")["hosts"] = []string{"b.example"}
	},
	"a scope that grants": func(d map[string]any) { routeOf(d, "files")["scope"] = "things:read" },
}

func routeOf(d map[string]any, name string) map[string]any {
	for _, r := range d["routes"].([]any) {
		if r.(map[string]any)["name"] == name {
			return r.(map[string]any)
		}
	}
	return map[string]any{}
}

func addRoute(d map[string]any, name, path, product, scope string) map[string]any {
	r := map[string]any{"name": name, "path": path, "product": product}
	if scope != "" {
		r["scope"] = scope
	}
	d["routes"] = append(d["routes"].([]any), r)
	return r
}

// callers are accounts with keys, each with a twin, some without a key and one with a
// key that is none.
func (s *stack) callers(t *testing.T) (list []caller) {
	t.Helper()
	admin := func(method, path string, body map[string]any) response {
		r := call(t, method, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1"+path, s.dev["SLUICE_ADMIN_KEY"], body)
		wantStatus(t, r, http.StatusCreated)
		return r
	}
	for _, keys := range [][]map[string]any{
		{{"scopes": []string{"things:read", "files:use"}}, {"scopes": []string{"things:*"}}},
		{{"scopes": []string{"things:write", "things:read"}}},
		{{"scopes": []string{"files:use"}, "rate_limit_per_minute": 12}},
	} {
		var of [2]string
		for i := range of {
			of[i] = into[struct{ ID string }](t, admin(http.MethodPost, "/accounts", map[string]any{"name": "rehearsed", "plan": "free"})).ID
		}
		for _, k := range keys {
			k["name"] = "k"
			var c caller
			for i, text := range []*string{&c.key, &c.twin} {
				*text = into[struct{ Key string }](t, admin(http.MethodPost, "/accounts/"+of[i]+"/keys", k)).Key
				keepSecret("key", *text)
			}
			list = append(list, c)
		}
	}
	return append(list, caller{}, caller{}, caller{"slk_none", "slk_none"})
}

// mixed is a mix of requests by a seed, with bursts against limits.
func mixed(rng *rand.Rand, callers, n int) (list []asked) {
	for len(list) < n {
		a := asked{caller: rng.IntN(callers), method: oneOf(rng, "GET", "GET", "HEAD", "POST", "PUT"), host: oneOf(rng, "", "", "a.example", "b.example", "A.example:80"), version: oneOf(rng, "", "1", "2")}
		a.path = oneOf(rng, "/things", "/things/7", "/things/special", "/things/special/", "/files/a", "/files/deep/b/c", "/files/", "/files", "/open", "/maybe", "/hosted", "/new", "/things/ann@example.com?token=x")
		if a.method == "POST" || a.method == "PUT" {
			a.size = oneOf(rng, 0, 200, 400, 1200)
		}
		times := 1
		if rng.IntN(20) == 0 {
			times = 30
		}
		for range times {
			list = append(list, a)
		}
	}
	return list[:n]
}

// oneOf is one of some values.
func oneOf[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// send makes the requests of a load, one after the other of each caller, all callers at
// once, and says what became of each.
func (s *stack) send(t *testing.T, list []asked, who []caller, again bool) []became {
	t.Helper()
	out := make([]became, len(list))
	var all sync.WaitGroup
	pace := time.NewTicker(time.Second / 150) // of which an edge records every one
	defer pace.Stop()
	// Two keys of an account share its limit: one goroutine has both.
	groups := map[int][]int{}
	for i, a := range list {
		g := max(1, a.caller)
		groups[g] = append(groups[g], i)
	}
	for _, group := range groups {
		all.Go(func() {
			for _, i := range group {
				<-pace.C
				out[i] = s.ask(t, list[i], who[list[i].caller], again)
			}
		})
	}
	all.Wait()
	return out
}

func (s *stack) ask(t *testing.T, a asked, who caller, again bool) became {
	var body io.Reader
	if a.size > 0 {
		body = strings.NewReader(strings.Repeat("a", a.size))
	}
	r, err := http.NewRequest(a.method, s.url(a.path), body)
	if err != nil {
		t.Error(err)
		return became{}
	}
	r.Host = a.host
	key, from := who.key, fmt.Sprintf("192.0.2.%d", a.caller)
	if again {
		key, from = who.twin, fmt.Sprintf("198.51.100.%d", a.caller)
	}
	r.Header.Set("X-Forwarded-For", from)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if a.version != "" {
		r.Header.Set("X-Version", a.version)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return became{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	b := became{id: res.Header.Get("X-Request-Id"), is: fmt.Sprint(res.StatusCode)} // HEAD has no body to tell by
	var e envelope
	if res.StatusCode >= 400 && json.Unmarshal(text, &e) == nil && a.method != "HEAD" {
		b.is += " " + e.Error.Code
	}
	if name, ok := strings.CutPrefix(string(text), "product "); ok {
		b.took = name
	}
	return b
}
