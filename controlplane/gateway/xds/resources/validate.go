package resources

import (
	"maps"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	fault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	wasmfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/filters/schema"
)

// noTables stands in the place of the filter that checks requests while no route
// asks for it: no edge has to load the program, and one of a release that has none
// takes the configuration. Should a route ask all the same, it answers 503.
var noTables = extension(ValidateFilter, &fault.HTTPFault{Abort: &fault.FaultAbort{
	ErrorType:  &fault.FaultAbort_HttpStatus{HttpStatus: 503},
	Percentage: &envoytype.FractionalPercent{Numerator: 100},
}})

// ValidateFilterConfig carries tables to edges, by the keys of routes. It has a VM
// of its own, so that a crash while it reads a body does not take authentication
// down with it.
func (s *Set) ValidateFilterConfig(tables map[string][]byte) *core.TypedExtensionConfig {
	if len(tables) == 0 {
		return noTables
	}
	b := schema.AppendSet(nil, []byte(s.opts.DocsBase))
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		b = schema.AppendSet(schema.AppendSet(b, []byte(key)), tables[key])
	}
	c := plugin("validate", "sluice-validate", b)
	// It decides on the body, so it holds the headers back until it has it.
	c.AllowOnHeadersStopIteration = wrapperspb.Bool(true)
	return extension(ValidateFilter, &wasmfilter.Wasm{Config: c})
}

// addTables gathers the tables of routes. The filter is that of the last set where
// they are the same.
func (s *Set) addTables(last *Set) {
	s.Tables = map[string][]byte{}
	for name, m := range s.made {
		if m.table != nil {
			s.Tables[s.keys[name]] = m.table
			for _, product := range m.from.Versions() {
				s.Tables[s.keys[versionOf(name, product)]] = m.table
			}
		}
	}
	same := maps.EqualFunc(s.Tables, last.Tables, func(a, b []byte) bool { return &a[0] == &b[0] })
	if _, ok := s.Filters[ValidateFilter]; !ok || !same {
		s.Filters[ValidateFilter] = s.ValidateFilterConfig(s.Tables)
	}
}
