package resources

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

func cached(path string) config.Route {
	return config.Route{Name: "kept" + strings.ReplaceAll(path, "/", "."), Path: path, Auth: []string{"none"}, Product: "api", Cache: &config.Cache{TTL: "1m"}}
}

// Only a document with a cache has the filter: a document without gives edges what it
// gave them before there was one. The filter is the last before the router.
func TestOnlyDocumentsWithACacheHaveTheFilter(t *testing.T) {
	t.Parallel()
	plain := everything()
	with := everything()
	with.Routes = append(with.Routes, config.Route{Name: "kept", Path: "/kept", Auth: []string{"key"}, Product: "media", Cache: &config.Cache{TTL: "1m"}})
	for _, c := range []struct {
		d    config.Document
		want bool
	}{{plain, false}, {with, true}} {
		s := build(t, c.d, Options{})
		ls, err := s.Listeners(where)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := s.Filters[CacheFilter]; has != c.want {
			t.Errorf("the filter is there: %v", has)
		}
		text := ls["gateway"].String()
		if at := strings.Index(text, CacheFilter); (at > 0) != c.want || c.want && (at < strings.Index(text, ChatCapsFilter) || at > strings.Index(text, "envoy.filters.http.router")) {
			t.Errorf("in the listener at %d", at)
		}
		if routes := s.Routes["gateway"].String(); strings.Contains(routes, CacheFilter) != c.want {
			t.Errorf("in the routes: %v", !c.want)
		}
	}
}

// What is kept goes with any change of the route or of its product, and stays with those
// of others. A filter that had rules stays when they are gone.
func TestRulesFollowTheirRoutes(t *testing.T) {
	t.Parallel()
	b := NewBuilder(Options{})
	made := func(change func(*config.Document)) *Set {
		d := everything()
		d.Routes = append(d.Routes, config.Route{Name: "kept", Path: "/kept", Auth: []string{"key"}, Product: "media", Cache: &config.Cache{TTL: "1m"}})
		change(&d)
		p, err := d.Policy(1, "", config.ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Build(d, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	rule := func(s *Set) (digest string) {
		for _, r := range s.CacheRules {
			digest = string(r.Digest[:])
		}
		return digest
	}
	first := made(func(*config.Document) {})
	for name, c := range map[string]struct {
		change func(*config.Document)
		same   bool
	}{
		"nothing":         {func(*config.Document) {}, true},
		"another route":   {func(d *config.Document) { d.Routes[0].Timeout = "9s" }, true},
		"another product": {func(d *config.Document) { d.Products[1].MaxPending = 9 }, true},
		"the route":       {func(d *config.Document) { d.Routes[len(d.Routes)-1].Timeout = "9s" }, false},
		"its product":     {func(d *config.Document) { d.Products[0].Upstreams[1].Address = "10.0.0.9:80" }, false},
		"a purge": {func(d *config.Document) {
			d.Routes[len(d.Routes)-1].Cache = &config.Cache{TTL: "1m", Purged: "2026-01-31T12:00:00Z"}
		}, false},
	} {
		if s := made(c.change); (rule(s) == rule(first)) != c.same {
			t.Errorf("%s changed: the same rule: %v", name, !c.same)
		}
	}
	gone := made(func(d *config.Document) { d.Routes = d.Routes[:len(d.Routes)-1] })
	if f, ok := gone.Filters[CacheFilter]; !ok || string(f.TypedConfig.Value) != string(CacheFilterConfig(nil).TypedConfig.Value) {
		t.Error("edges that are still drained lose the filter")
	}
}

// A route without a cache runs not one instruction of the filter, in a document that has
// one: with a program in its place that traps, it answers as ever.
func TestRoutesWithoutACacheNeverEnterTheFilter(t *testing.T) {
	t.Parallel()
	v := crashing(t, "cache", cached("/kept"))
	for range 50 {
		if res, _ := exchange(t, v.addr, get("/v1/health", 60)); res.StatusCode != 200 {
			t.Fatalf("a route without a cache: %d", res.StatusCode)
		}
	}
	before := v.hits.Load()
	if res, _ := exchange(t, v.addr, get("/kept", 60)); res.StatusCode != 503 || v.hits.Load() != before {
		t.Errorf("a route with one: %d", res.StatusCode)
	}
}
