package resources

import (
	"maps"
	"slices"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	input "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The matcher of a listener chooses one of its filter chains. Unlike conditions in the
// chains themselves, it can change while the chains, and their connections, stay.

// serverName is the name that a client asks for, in lower case.
func serverName() *xdscore.TypedExtensionConfig {
	return &xdscore.TypedExtensionConfig{Name: "envoy.matching.inputs.server_name", TypedConfig: pack(&input.ServerNameInput{})}
}

// protocols are those that a client offers, each in quotes, with commas between.
func protocols() *xdscore.TypedExtensionConfig {
	return &xdscore.TypedExtensionConfig{Name: "envoy.matching.inputs.application_protocol", TypedConfig: pack(&input.ApplicationProtocolInput{})}
}

// toChain chooses the chain of a name.
func toChain(name string) *tree.Matcher_OnMatch {
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{Name: name, TypedConfig: pack(wrapperspb.String(name))}}}
}

// goOn asks another matcher.
func goOn(m *tree.Matcher) *tree.Matcher_OnMatch {
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Matcher{Matcher: m}}
}

// exactly looks an input up in a table; rest is for what is not there.
func exactly(in *xdscore.TypedExtensionConfig, table map[string]*tree.Matcher_OnMatch, rest *tree.Matcher_OnMatch) *tree.Matcher {
	return &tree.Matcher{OnNoMatch: rest, MatcherType: &tree.Matcher_MatcherTree_{MatcherTree: &tree.Matcher_MatcherTree{
		Input: in, TreeType: &tree.Matcher_MatcherTree_ExactMatchMap{ExactMatchMap: &tree.Matcher_MatcherTree_MatchMap{Map: table}},
	}}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
