package resources

import (
	"slices"

	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// single are the headers that may have one value: who calls, who pays, and whom
// the request is for.
var single = []string{"authorization", "x-payment", ":authority"}

// onlySingle sends requests in which one of those has several values to a route
// that refuses them, and all others on. A credential or a payment never has a
// comma in it. The list of a route's own header matchers would not do: those
// look at each value by itself.
func (s *Set) onlySingle(on *tree.Matcher_OnMatch) *tree.Matcher {
	names := slices.Concat(single, s.Policy.KeyHeaders)
	several := make([]*tree.Matcher_MatcherList_Predicate, len(names))
	for i, name := range names {
		several[i] = contains(name, ",")
	}
	return &tree.Matcher{
		MatcherType: &tree.Matcher_MatcherList_{MatcherList: &tree.Matcher_MatcherList{Matchers: []*tree.Matcher_MatcherList_FieldMatcher{{
			Predicate: anyOf(several...),
			OnMatch:   encode(&route.RouteList{Routes: []*route.Route{s.opts.direct(config.Repeated, "/", 400)}}),
		}}}},
		OnNoMatch: on,
	}
}

// anyOf is true when one of some predicates is.
func anyOf(predicates ...*tree.Matcher_MatcherList_Predicate) *tree.Matcher_MatcherList_Predicate {
	return &tree.Matcher_MatcherList_Predicate{MatchType: &tree.Matcher_MatcherList_Predicate_OrMatcher{
		OrMatcher: &tree.Matcher_MatcherList_Predicate_PredicateList{Predicate: predicates},
	}}
}

// contains is true when a header has the text in it.
func contains(name, text string) *tree.Matcher_MatcherList_Predicate {
	return predicate(name, &tree.StringMatcher{MatchPattern: &tree.StringMatcher_Contains{Contains: text}})
}

// equals is true when a header is the text.
func equals(name, text string) *tree.Matcher_MatcherList_Predicate {
	return predicate(name, &tree.StringMatcher{MatchPattern: &tree.StringMatcher_Exact{Exact: text}})
}

// predicate is true when m matches a header.
func predicate(name string, m *tree.StringMatcher) *tree.Matcher_MatcherList_Predicate {
	return &tree.Matcher_MatcherList_Predicate{MatchType: &tree.Matcher_MatcherList_Predicate_SinglePredicate_{
		SinglePredicate: &tree.Matcher_MatcherList_Predicate_SinglePredicate{
			Input:   headerInput(name),
			Matcher: &tree.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: m},
		},
	}}
}
