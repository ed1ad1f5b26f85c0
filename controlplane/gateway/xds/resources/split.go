package resources

import (
	"cmp"
	"slices"

	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hashing "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/consistent_hashing/v3"
	percent "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// versionOf is where Set.keys has the name of a route's policy for a version of its
// product.
func versionOf(name, product string) string { return name + " " + product }

// variant is a route for one of the products that its requests are split between.
type variant struct {
	product string
	headers []config.HeaderMatch // that choose it, besides what the route asks
	share   config.Share         // of all requests; 0 to 100: all that are left
}

var wholeShare = config.Share{To: 100}

// variants are those of r in the order in which they are tried.
func variants(r config.Route) (list []variant) {
	shares, own := r.Shares()
	for _, v := range r.Split {
		if v.Weight == nil {
			list = append(list, variant{v.Product, v.Headers, wholeShare})
		}
	}
	for i, v := range r.Split {
		if v.Weight != nil && *v.Weight > 0 {
			list = append(list, variant{v.Product, nil, shares[i]})
		}
	}
	if own > 0 {
		list = append(list, variant{r.Product, nil, config.Share{To: own}})
	}
	return list
}

// split compiles a route for one method and each of its versions. All have the same
// number drawn for a request, so what is drawn goes to the first whose share
// reaches above it: the last one takes what is left. Callers who stick are told apart
// in the list instead: see bucketed.
func (s *Set) split(r config.Route, p config.Pattern, method string) (list []branched) {
	all := variants(r)
	for i, v := range all {
		one := r
		one.Product = v.product
		if one.CORS = s.corsOf(r); one.CORS == nil {
			one.CORS = &config.CORS{} // the version's own does not count
		}
		out := s.route(one, p, method)
		if v.product != r.Product {
			out.Name = s.keys[versionOf(r.Name, v.product)]
		}
		for _, h := range v.headers {
			out.Match.Headers = append(out.Match.Headers, headerMatch(h))
		}
		b := branched{start: start(p), method: method, route: out, asked: map[string]*route.Route{}}
		switch {
		case v.share == wholeShare:
		case r.Sticky != "":
			b.share = v.share
		case i < len(all)-1:
			out.Match.RuntimeFraction = fraction(100 - v.share.From)
		}
		list = append(list, b)
	}
	return list
}

// fraction is so many of a hundred requests.
func fraction(n uint32) *core.RuntimeFractionalPercent {
	return &core.RuntimeFractionalPercent{DefaultValue: &percent.FractionalPercent{Numerator: n, Denominator: percent.FractionalPercent_HUNDRED}}
}

// bucketed is list, encoded, for callers who stick to what they have met: a list for
// each part of a hundred in which other versions are met, chosen by what callers send
// as a credential. Whoever sends none is in the first part.
func (l *routeLists) bucketed(list *route.RouteList) *tree.Matcher_OnMatch {
	var bounds []uint32
	for _, r := range list.Routes {
		if share, ok := l.shares[r]; ok && share.From > 0 {
			bounds = append(bounds, share.From)
		}
	}
	if len(bounds) == 0 {
		return encode(list)
	}
	slices.SortFunc(bounds, func(a, b uint32) int { return cmp.Compare(b, a) })
	m := &tree.Matcher_MatcherList{}
	for _, from := range slices.Compact(bounds) {
		var creds []*tree.Matcher_MatcherList_Predicate
		for _, name := range l.credentials {
			creds = append(creds, hashedFrom(name, from))
		}
		m.Matchers = append(m.Matchers, &tree.Matcher_MatcherList_FieldMatcher{Predicate: oneOf(creds), OnMatch: encode(l.at(list, from))})
	}
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Matcher{Matcher: &tree.Matcher{
		MatcherType: &tree.Matcher_MatcherList_{MatcherList: m}, OnNoMatch: encode(l.at(list, 0)),
	}}}
}

// at are the routes of a list for callers in the part of a hundred that begins at from.
func (l *routeLists) at(list *route.RouteList, from uint32) *route.RouteList {
	out := &route.RouteList{}
	for _, r := range list.Routes {
		if share, ok := l.shares[r]; !ok || share.From <= from && from < share.To {
			out.Routes = append(out.Routes, r)
		}
	}
	return out
}

// oneOf is anyOf, which wants at least two.
func oneOf(predicates []*tree.Matcher_MatcherList_Predicate) *tree.Matcher_MatcherList_Predicate {
	if len(predicates) == 1 {
		return predicates[0]
	}
	return anyOf(predicates...)
}

// hashedFrom is true when a header is there, and its sum is from or above of a hundred.
func hashedFrom(name string, from uint32) *tree.Matcher_MatcherList_Predicate {
	return &tree.Matcher_MatcherList_Predicate{MatchType: &tree.Matcher_MatcherList_Predicate_SinglePredicate_{
		SinglePredicate: &tree.Matcher_MatcherList_Predicate_SinglePredicate{
			Input: headerInput(name),
			Matcher: &tree.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
				CustomMatch: typed("envoy.matching.matchers.consistent_hashing", &hashing.ConsistentHashing{Threshold: from, Modulo: 100}),
			},
		},
	}}
}
