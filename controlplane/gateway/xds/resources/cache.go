package resources

import (
	"maps"
	"reflect"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"sluice.dev/sluice/filters/httpcache"
)

// CacheFilter is the name of the cache filter, and of the resource that has its rules.
const CacheFilter = "sluice.cache"

// CacheFilterConfig carries rules to edges. It has a VM of its own: what it keeps is of
// products, and large.
func CacheFilterConfig(rules map[string]httpcache.Rule) *core.TypedExtensionConfig {
	var list []httpcache.Rule
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		list = append(list, rules[key])
	}
	return extension(CacheFilter, &wasmfilter.Wasm{Config: plugin("cache", "sluice-cache", httpcache.Append(nil, list))})
}

// addCache gathers the rules of routes. A document without any has no filter: it stands
// in the listeners of documents that have. One that had rules stays, without any: while
// those listeners are drained, Envoy would answer 500 without it.
func (s *Set) addCache(last *Set) error {
	s.CacheRules = map[string]httpcache.Rule{}
	for _, r := range s.doc.Routes {
		if r.Cache == nil {
			continue
		}
		rule, err := r.CacheRule(s.products[r.Product], s.keys[r.Name])
		if err != nil {
			return err
		}
		s.CacheRules[rule.Key] = rule
	}
	_, had := s.Filters[CacheFilter]
	if len(s.CacheRules) > 0 && !had || had && !reflect.DeepEqual(s.CacheRules, last.CacheRules) {
		s.Filters[CacheFilter] = CacheFilterConfig(s.CacheRules)
	}
	return nil
}

// withCache puts the cache filter before the router, if there is one. Whatever stands
// before it sees each request, and its answer, wherever that comes from: what checks, counts
// and compresses belongs there.
func (s *Set) withCache(chain []*hcm.HttpFilter) []*hcm.HttpFilter {
	if !s.settings.caches {
		return chain
	}
	return slices.Insert(chain, len(chain)-1, discovered(CacheFilter, true))
}
