package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// foretold is what a rehearsal answers.
type foretold struct {
	Record struct {
		Edges                              int
		Recorded, Requests, Agreeing, Lost int64
		Complete                           bool
	}
	Refused, Allowed, Moved, Otherwise, Undetermined struct {
		Requests int64
		Accounts int
		More     int
		Findings []struct {
			Requests                                        int64
			Method, Path, Route, Was, Product, Code, Reason string
			Accounts                                        []struct {
				Account     string `json:"account_id"`
				Requests    int64
				Credentials []struct{ ID string }
			}
			Examples []struct{ ID string }
		}
	}
	Limits []struct {
		Account   string `json:"account_id"`
		Limit     string
		PerMinute int `json:"per_minute"`
		Refused   int64
	}
	Notes []string
}

// rehearse asks what a document would do to the requests of the last hour.
func (s *stack) rehearse(t testing.TB, document map[string]any) foretold {
	t.Helper()
	r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/config/rehearsal?examples=1000", s.dev["SLUICE_ADMIN_KEY"], document)
	wantStatus(t, r, http.StatusOK)
	return into[foretold](t, r)
}

// isRecorded waits until what was asked so far is recorded: a request that comes behind
// it is.
func (s *stack) isRecorded(t testing.TB, d map[string]any) {
	t.Helper()
	mapped := maps.Clone(d)
	mapped["routes"] = slices.Clone(d["routes"].([]any))
	addRoute(mapped, "sentinel", "/sentinel", "one", "")["auth"] = []string{"none"}
	last := call(t, http.MethodGet, s.url("/sentinel"), "", nil, "X-Forwarded-For", "203.0.113.9").Header.Get("X-Request-Id")
	eventually(t, "every request is recorded", func() error {
		got := s.rehearse(t, mapped)
		for _, f := range got.Allowed.Findings {
			for _, e := range f.Examples {
				if e.ID == last {
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", got)
	})
}

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

// named is a product that answers with its name.
func named(t *testing.T, name string) string {
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
	one := func(values ...string) string { return values[rng.IntN(len(values))] }
	for len(list) < n {
		a := asked{caller: rng.IntN(callers), method: one("GET", "GET", "HEAD", "POST", "PUT"), host: one("", "", "a.example", "b.example", "A.example:80"), version: one("", "1", "2")}
		a.path = one("/things", "/things/7", "/things/special", "/things/special/", "/files/a", "/files/deep/b/c", "/files/", "/files", "/open", "/maybe", "/hosted", "/new", "/things/ann@example.com?token=x")
		if a.method == "POST" || a.method == "PUT" {
			a.size = one2(rng, 0, 200, 400, 1200)
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

func one2(rng *rand.Rand, values ...int) int { return values[rng.IntN(len(values))] }

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

// statuses of codes that requests of these tests are refused with.
var statuses = map[string]int{"AUTH_002": 403, "ROUTE_NOT_MAPPED": 403, "not_found": 404, "rate_limit_exceeded": 429, "invalid_api_key": 401, "authentication_required": 401,
	"request_too_large": 413, "invalid_token": 401}

// What a rehearsal foretells of a document is what happens once it is published, of each
// request of a load.
func TestARehearsalForetellsEveryRequest(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := gatewayAlone(t)
			rng := rand.New(rand.NewPCG(seed, 21))
			d := rehearsedDocument(named(t, "one"), named(t, "other"))
			s.publish(t, d)
			who := s.callers(t)
			s.accepts(t, who)
			list := mixed(rng, len(who), 400)
			began := time.Now()
			was := s.send(t, list, who, false)
			changed := s.changed(t, d, rng)
			s.isRecorded(t, d)
			got := s.rehearse(t, changed)
			if !got.Record.Complete || got.Record.Edges != 1 || got.Record.Lost != 0 || got.Record.Recorded < int64(len(list)) {
				t.Errorf("%+v", got.Record)
			}
			status := 0
			if got.Refused.Requests > 0 {
				status = 2
			}
			if out := s.exits(t, status, "apply", "--rehearse", "-f", s.file(t, changed)); !strings.Contains(out, "nothing was published") || !strings.Contains(out, "tried on all of ") ||
				strings.Contains(out, "would now be refused") != (status == 2) {
				t.Error(out)
			}
			s.publish(t, changed)
			is := s.send(t, list, who, true)
			s.compare(t, got, list, was, is)
			t.Logf("%d requests in %v twice, %d to be refused, %d no more, %d elsewhere, %d otherwise, %d undetermined; the document in force agrees with %d of %d", len(list), time.Since(began),
				got.Refused.Requests, got.Allowed.Requests, got.Moved.Requests, got.Otherwise.Requests, got.Undetermined.Requests, got.Record.Agreeing, got.Record.Recorded)
		})
	}
}

// changed is d with half of the edits, by a seed.
func (s *stack) changed(t *testing.T, d map[string]any, rng *rand.Rand) map[string]any {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		if rng.IntN(2) == 0 {
			t.Log(name)
			edits[name](out)
		}
	}
	return out
}

// publish applies a document as people do, and waits until the edge has it.
func (s *stack) publish(t *testing.T, d map[string]any) {
	t.Helper()
	s.exits(t, 0, "apply", "-f", s.file(t, d), "--wait")
}

func (s *stack) file(t *testing.T, d map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// accepts waits until the edge knows all keys: a request of each to a route that is not
// there for its rate, so that no window is touched.
func (s *stack) accepts(t *testing.T, who []caller) {
	t.Helper()
	for _, c := range who {
		for _, key := range []string{c.key, c.twin} {
			if !strings.HasPrefix(key, "slk_") || key == "slk_none" {
				continue
			}
			eventually(t, "a key is known", func() error {
				r, err := try(http.MethodGet, s.url("/hosted"), key, nil, "X-Forwarded-For", "203.0.113.9")
				if err == nil && r.StatusCode == http.StatusUnauthorized {
					err = fmt.Errorf("status %d", r.StatusCode)
				}
				return err
			})
		}
	}
}

// compare holds what was foretold to what happened.
func (s *stack) compare(t *testing.T, got foretold, list []asked, was, is []became) {
	t.Helper()
	code, undetermined, moved := map[string]string{}, map[string]string{}, map[string]string{}
	for _, f := range got.Refused.Findings {
		for _, e := range f.Examples {
			code[e.ID] = f.Code
		}
	}
	for _, f := range got.Otherwise.Findings {
		for _, e := range f.Examples {
			code[e.ID] = f.Code
		}
	}
	for _, f := range got.Allowed.Findings {
		for _, e := range f.Examples {
			code[e.ID] = "passes"
			moved[e.ID] = f.Product
		}
	}
	for _, f := range got.Moved.Findings {
		for _, e := range f.Examples {
			moved[e.ID] = f.Product
		}
	}
	for _, f := range got.Undetermined.Findings {
		for _, e := range f.Examples {
			undetermined[e.ID] = f.Reason
		}
	}
	wrong, open := 0, 0
	for i, a := range list {
		if undetermined[was[i].id] != "" {
			open++
			continue
		}
		want, took := was[i].is, was[i].took
		if c := code[was[i].id]; c == "passes" {
			want = "200"
		} else if c != "" {
			want, took = fmt.Sprint(statuses[c], " ", c), ""
			if a.method == "HEAD" {
				want = fmt.Sprint(statuses[c])
			}
		}
		if p := moved[was[i].id]; p != "" && a.method != "HEAD" {
			took = p
		}
		if is[i].is != want || is[i].took != took {
			wrong++
			t.Errorf("%d, %+v: was %q of %q, foretold %q of %q, and was %q of %q", i, a, was[i].is, was[i].took, want, took, is[i].is, is[i].took)
		}
	}
	t.Logf("%d of %d requests were as foretold, of %d nothing was", len(list)-wrong-open, len(list)-open, open)
	if open > len(list)/4 {
		t.Errorf("of %d requests nothing was foretold", open)
	}
}

// Of requests that an account makes at the same time the number that is refused is
// foretold, though not which.
func TestARehearsalForetellsHowManyOfABurst(t *testing.T) {
	t.Parallel()
	s := gatewayAlone(t)
	d := rehearsedDocument(named(t, "one"), named(t, "other"))
	s.publish(t, d)
	who := s.callers(t)
	s.accepts(t, who)
	list := slices.Repeat([]asked{{caller: 2, method: "POST", path: "/things"}, {caller: 2, method: "GET", path: "/things/7"}, {caller: 4, method: "GET", path: "/maybe"}, {caller: 3, method: "GET", path: "/files/a"}}, 60)
	crowd := func(again bool) (refused map[int]int, passed map[string]bool) {
		var all sync.WaitGroup
		var mu sync.Mutex
		refused, passed = map[int]int{}, map[string]bool{}
		next := make(chan asked)
		pace := time.NewTicker(time.Second / 150)
		defer pace.Stop()
		for range 12 {
			all.Go(func() {
				for a := range next {
					<-pace.C
					b := s.ask(t, a, who[a.caller], again)
					mu.Lock()
					if passed[b.id] = b.is == "200"; !passed[b.id] {
						refused[a.caller]++
					}
					mu.Unlock()
				}
			})
		}
		for _, a := range list {
			next <- a
		}
		close(next)
		all.Wait()
		return refused, passed
	}
	was, passed := crowd(false)
	s.isRecorded(t, d)
	edits["a smaller class"](d)
	edits["a smaller default"](d)
	edits["fewer without a key"](d)
	routeOf(d, "files")["scope"] = "things:read"
	got := s.rehearse(t, d)
	foretold := maps.Clone(was)
	count := func(list []string, by int) {
		for _, id := range list {
			if _, ours := passed[id]; ours {
				foretold[by]++
			}
		}
	}
	for _, f := range got.Refused.Findings {
		var ids []string
		for _, e := range f.Examples {
			ids = append(ids, e.ID)
		}
		count(ids, map[string]int{"/things": 2, "/things/{id}": 2, "/maybe": 4, "/files/*": 3}[f.Path])
	}
	for _, f := range got.Allowed.Findings {
		foretold[map[string]int{"/things": 2, "/things/{id}": 2, "/maybe": 4, "/files/*": 3}[f.Path]] -= int(f.Requests)
	}
	s.publish(t, d)
	is, _ := crowd(true)
	t.Logf("refused before %v, foretold %v, then %v", was, foretold, is)
	if !maps.Equal(foretold, is) {
		t.Errorf("refused %v, foretold %v", is, foretold)
	}
	// Without a record there is nothing to foretell, and the answer says so.
	d["request_log"] = "off"
	s.publish(t, d)
	if got := s.rehearse(t, d); len(got.Notes) == 0 || !strings.Contains(got.Notes[0], "request_log is off") {
		t.Errorf("%v", got.Notes)
	}
}
