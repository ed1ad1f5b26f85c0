package resources

import (
	"regexp"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// lasting makes a that of a route whose requests may last: silence ends one, not the time
// that it takes, but for its lifetime.
func lasting(a *route.RouteAction, r config.Route) {
	if !r.LongLived() {
		return
	}
	a.Timeout = durationpb.New(0)
	a.IdleTimeout = durationpb.New(r.Timeout.Or(defaultStreamIdle))
	if r.Lifetime != "" {
		a.MaxStreamDuration = &route.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(r.Lifetime.Or(0))}
	}
	for _, u := range r.Upgrades {
		a.UpgradeConfigs = append(a.UpgradeConfigs, &route.RouteAction_UpgradeConfig{UpgradeType: u})
	}
}

// withOrigins returns the routes that out stands for. Browsers let any page open a
// WebSocket anywhere, and ask nobody beforehand; they say from which origin. So where a
// route has CORS, upgrades are for clients that name no origin and for pages of its
// origins: others meet the same route without upgrades, where Envoy refuses them.
func (s *Set) withOrigins(r config.Route, out *route.Route) []*route.Route {
	c := s.corsOf(r)
	if len(r.Upgrades) == 0 || c == nil || slices.Contains(c.Origins, "*") {
		return []*route.Route{out}
	}
	closed := proto.CloneOf(out)
	closed.GetRoute().UpgradeConfigs = nil
	exprs := []string{""}
	for _, o := range c.Origins {
		m := originMatch(o)
		if exact := m.GetExact(); exact != "" {
			m = safeRegex(regexp.QuoteMeta(exact))
		}
		exprs = append(exprs, m.GetSafeRegex().Regex)
	}
	h := header("origin", safeRegex("("+strings.Join(exprs, "|")+")"))
	h.TreatMissingHeaderAsEmpty = true
	out.Match.Headers = append(out.Match.Headers, h)
	return []*route.Route{out, closed}
}

// acceptExtendedConnect lets clients of HTTP/2 ask for a WebSocket (RFC 8441), and of HTTP/3
// (RFC 9220). It is the same whatever the routes are: a listener that changed would cut
// connections. Routes that have no upgrades refuse it, as they do over HTTP/1.1.
func acceptExtendedConnect(m *hcm.HttpConnectionManager) {
	m.Http2ProtocolOptions.AllowConnect = true
}

// refusedUpgrade is what Envoy says of a request for an upgrade that its route does not have.
const refusedUpgrade = `response.code_details == "upgrade_failed"`

// upgradeMapper gives that answer a code of its own.
func (s *Set) upgradeMapper() *hcm.ResponseMapper {
	return &hcm.ResponseMapper{
		Filter:       and(statusIs(403), celFilter(madeByEnvoy+" && "+refusedUpgrade)),
		HeadersToAdd: s.replyHeaders(),
		BodyFormatOverride: &core.SubstitutionFormatString{
			ContentType: "application/json",
			Format:      &core.SubstitutionFormatString_JsonFormat{JsonFormat: s.envelope(decision.UpgradeRefused)},
		},
	}
}
