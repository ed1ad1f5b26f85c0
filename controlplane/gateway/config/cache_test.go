package config

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/httpcache"
)

// withCache is a document of one route with a cache, changed by change.
func withCache(change func(*Route)) Document {
	return shadowed(func(_ *Document, r *Route) {
		r.Cache = &Cache{TTL: "1m", Vary: []string{"Accept-Language", "Accept"}}
		if change != nil {
			change(r)
		}
	})
}

func TestRulesOfCaches(t *testing.T) {
	t.Parallel()
	d := withCache(nil)
	if f := d.Faults(); f != nil {
		t.Fatal(f)
	}
	rule, err := d.Routes[0].CacheRule(d.Products[0], "r@1")
	if err != nil || rule.Key != "r@1" || rule.Route != "r" || rule.TTL != 60 || rule.MaxBytes != defaultCached || rule.Per != httpcache.PerAccount || strings.Join(rule.Vary, " ") != "accept accept-encoding accept-language" {
		t.Errorf("%+v %v", rule, err)
	}
	if !d.Caches() || shadowed(nil).Caches() || d.Equal(withCache(func(r *Route) { r.Cache.TTL = "2m" })) || !d.Equal(withCache(nil)) {
		t.Error("caches are not compared")
	}
}

// A route has a cache only where the edge knows whose the answers are.
func TestFaultsOfCaches(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Route){
		"routes[0].cache.ttl is not a number of seconds":                 func(r *Route) { r.Cache.TTL = "" },
		"routes[0].cache.ttl is not a number":                            func(r *Route) { r.Cache.TTL = "1500ms" },
		"routes[0].cache.per is not a known":                             func(r *Route) { r.Cache.Per = "user" },
		"routes[0].cache.max_bytes is too large":                         func(r *Route) { r.Cache.MaxBytes = 1<<20 + 1 },
		"routes[0].cache.vary[0] is a header by which":                   func(r *Route) { r.Cache.Vary = []string{"Cookie"} },
		"routes[0].cache.vary[1] is given twice":                         func(r *Route) { r.Cache.Vary = []string{"X-A", "X-A"} },
		"routes[0].cache.vary[0] is not the name":                        func(r *Route) { r.Cache.Vary = []string{"a b"} },
		"routes[0].cache.vary has too many":                              func(r *Route) { r.Cache.Vary = make([]string, 9) },
		"routes[0].cache.purged is not a time":                           func(r *Route) { r.Cache.Purged = "now" },
		"routes[0].cache is of a route without a product":                func(r *Route) { r.Product, r.Respond = "", &Respond{Status: 200} },
		"routes[0].cache is of a route whose callers the product checks": func(r *Route) { r.ForwardCredentials = true },
		"routes[0].cache is of a route that is sold":                     func(r *Route) { r.Price = "1" },
		"routes[0].cache is of a streaming":                              func(r *Route) { r.Streaming = true },
		"routes[0].cache is of a route that answers neither":             func(r *Route) { r.Methods = []string{"POST"} },
	} {
		found := false
		var got []string
		for _, f := range withCache(change).Faults() {
			text := f.Field + " " + f.Issue
			found, got = found || strings.HasPrefix(text, want), append(got, text)
		}
		if !found {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
