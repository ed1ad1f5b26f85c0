package resources

import (
	"slices"

	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/identityheader"
)

// MirrorHeader names the product whose request a copy is of. Clients cannot send it.
const MirrorHeader = ownHeaders + "mirror-of"

// mirrors are the copies that are made of r's requests. They have the headers of what
// the product gets, but for what lets their holder act as the caller.
func (s *Set) mirrors(r config.Route) []*route.RouteAction_RequestMirrorPolicy {
	m := r.Mirror
	if m == nil || m.Percent != nil && *m.Percent == 0 {
		return nil
	}
	secret := slices.Concat(credentials, []string{"cookie"}, s.Policy.KeyHeaders)
	if !m.Identity {
		secret = append(secret, identityheader.Header)
	}
	policy := &route.RouteAction_RequestMirrorPolicy{
		Cluster: m.Product, DisableShadowHostSuffixAppend: true, HostRewriteLiteral: s.products[m.Product].Host,
		RequestHeadersMutations: []*mutation.HeaderMutation{appended(replaceHeader(MirrorHeader, r.Product))},
	}
	for _, name := range secret {
		policy.RequestHeadersMutations = append(policy.RequestHeadersMutations, &mutation.HeaderMutation{Action: &mutation.HeaderMutation_Remove{Remove: name}})
	}
	if m.Percent != nil {
		policy.RuntimeFraction = fraction(*m.Percent)
	}
	return []*route.RouteAction_RequestMirrorPolicy{policy}
}

func appended(h *core.HeaderValueOption) *mutation.HeaderMutation {
	return &mutation.HeaderMutation{Action: &mutation.HeaderMutation_Append{Append: h}}
}
