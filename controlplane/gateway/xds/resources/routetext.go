package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/filters/routehint"
)

// routeText says to the edge filter what the routes of a listener are, and behind them
// those of the other one, for callers whose request no route takes. Routes that ask for
// headers are not in it: their callers know what they ask for.
func (s *Set) routeText(listener string) *core.Metadata {
	var text []byte
	for _, other := range []bool{false, true} {
		for _, r := range s.hinted(listener, other) {
			text = routehint.Append(text, r)
		}
	}
	sum := sha256.Sum256(text)
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"sluice": object(map[string]string{"routes": string(text), "sum": hex.EncodeToString(sum[:8])}),
	}}
}

// hinted are the routes of a listener, or those of all others, with the methods of one
// path and the same hosts together.
func (s *Set) hinted(listener string, others bool) []routehint.Route {
	var list []routehint.Route
	at := map[string]int{}
	for _, r := range s.doc.Routes {
		if (r.ListenerName() != listener) != others || len(r.Headers) > 0 {
			continue
		}
		one := routehint.Route{Path: r.Path, Methods: r.Matches(), Hosts: r.Hosts}
		if others {
			one.Listener = r.ListenerName()
		}
		key := one.Path + " " + one.Listener + " " + strings.Join(one.Hosts, ",")
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(list)
			list = append(list, one)
		case len(one.Methods) == 0 || len(list[i].Methods) == 0:
			list[i].Methods = nil
		default:
			list[i].Methods = union(list[i].Methods, one.Methods)
		}
	}
	slices.SortStableFunc(list, func(a, b routehint.Route) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// union is a with what b has besides.
func union(a, b []string) []string {
	a = slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}
