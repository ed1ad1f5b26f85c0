package resources

import (
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// redirectCodes are Envoy's numbers of statuses.
var redirectCodes = map[uint32]route.RedirectAction_RedirectResponseCode{
	301: route.RedirectAction_MOVED_PERMANENTLY, 302: route.RedirectAction_FOUND, 303: route.RedirectAction_SEE_OTHER,
	0: route.RedirectAction_TEMPORARY_REDIRECT, 307: route.RedirectAction_TEMPORARY_REDIRECT, 308: route.RedirectAction_PERMANENT_REDIRECT,
}

// redirect answers requests for paths of p with where to go in their place.
func redirect(r config.Redirect, p config.Pattern) *route.Route_Redirect {
	to := &route.RedirectAction{HostRedirect: r.Host, ResponseCode: redirectCodes[r.Status]}
	if r.Scheme != "" {
		to.SchemeRewriteSpecifier = &route.RedirectAction_SchemeRedirect{SchemeRedirect: r.Scheme}
	}
	if from, text, ok := pathRewrite(p, r.Path, r.Prefix); ok {
		to.PathRewriteSpecifier = &route.RedirectAction_RegexRewrite{RegexRewrite: &matcher.RegexMatchAndSubstitute{Pattern: &matcher.RegexMatcher{Regex: from}, Substitution: text}}
	}
	return &route.Route_Redirect{Redirect: to}
}

// pathRewrite is an expression for paths of p, and what stands for them by a template or
// a prefix; ok is false when they stay.
func pathRewrite(p config.Pattern, path, prefix string) (from, to string, ok bool) {
	switch {
	case path != "":
		q, err := config.ParsePath(path)
		if err != nil { // Validate has refused it
			return "", "", false
		}
		from, to = p.Substitution(q)
	case prefix != "":
		from, to = p.PrefixSubstitution(prefix)
	}
	return from, to, from != ""
}
