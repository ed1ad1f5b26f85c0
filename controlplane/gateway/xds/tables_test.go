package xds

import (
	"maps"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// While edges go over from one version to the next they have the tables of both, so
// that no request meets a route without its own.
func TestEdgesHaveTheTablesOfBothVersions(t *testing.T) {
	t.Parallel()
	made := func(schema config.JSONSchema) *resources.Set {
		d := document(t)
		d.Products = append(d.Products, config.Product{Name: "shop", Upstreams: []config.Upstream{{Address: "127.0.0.1:4"}}})
		if schema != "" {
			d.Routes = append(d.Routes, config.Route{Name: "orders", Path: "/v1/orders", Auth: []string{"key"}, Product: "shop", Validate: config.ValidateRequest,
				Request: &config.Request{Body: &config.RequestBody{Content: map[string]config.MediaType{"application/json": {Schema: schema}}}}})
		}
		p, err := d.Policy(0, "", config.ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		s, err := resources.Build(d, p, resources.Options{Addresses: map[string][]string{"api": {"127.0.0.1:1"}, "media": {"127.0.0.1:2"}, "runtime": {"127.0.0.1:3"}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	old, next, none := made(`{"type":"object"}`), made(`{"type":"array"}`), made("")
	for name, c := range map[string]struct {
		from, to *resources.Set
		tables   int
	}{"changed": {old, next, 2}, "added": {none, next, 1}, "removed": {old, none, 1}, "as it was": {old, made(`{"type":"object"}`), 1}} {
		both := overlap(c.from, c.to)
		want := c.to.ValidateFilterConfig(both.Tables)
		if len(both.Tables) != c.tables || string(both.Filters[resources.ValidateFilter].TypedConfig.Value) != string(want.TypedConfig.Value) {
			t.Errorf("%s: %v", name, slices.Collect(maps.Keys(both.Tables)))
		}
	}
}

// While edges go over they have the rules of both versions, and the filter as long as
// either has one.
func TestEdgesHaveTheRulesOfBothVersions(t *testing.T) {
	t.Parallel()
	made := func(ttl config.Duration, limit uint64) *resources.Set {
		d := document(t)
		if ttl != "" {
			d.Routes = append(d.Routes, config.Route{Name: "kept", Path: "/v1/kept", Auth: []string{"key"}, Product: d.Products[0].Name, BodyLimit: limit, Cache: &config.Cache{TTL: ttl}})
		}
		p, err := d.Policy(0, "", config.ProvisionalNumbers(d))
		if err != nil {
			t.Fatal(err)
		}
		s, err := resources.Build(d, p, resources.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		from, to *resources.Set
		rules    int
	}{
		"begins": {made("", 0), made("1m", 0), 1}, "ends": {made("1m", 0), made("", 0), 1}, "stays": {made("1m", 0), made("1m", 0), 1},
		"another time": {made("1m", 0), made("2m", 0), 1}, "another revision": {made("1m", 0), made("1m", 9), 2}, "never": {made("", 0), made("", 1), 0},
	} {
		both := overlap(c.from, c.to)
		f, has := both.Filters[resources.CacheFilter]
		if len(both.CacheRules) != c.rules || has != (c.rules > 0) {
			t.Fatalf("%s: %d rules, the filter is there: %v", name, len(both.CacheRules), has)
		}
		if has && string(f.TypedConfig.Value) != string(resources.CacheFilterConfig(both.CacheRules).TypedConfig.Value) {
			t.Errorf("%s: the filter has other rules", name)
		}
	}
}
