package config

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/filters/policy"
)

// WebSocket is the one protocol that a route may be upgraded to.
const WebSocket = "websocket"

// maxConnections bounds how many connections a limit may allow.
const maxConnections = 1_000_000_000

// LongLived reports whether one request of r may last for as long as its two ends
// like: what Timeout says of r is then about silence.
func (r Route) LongLived() bool { return r.Streaming || len(r.Upgrades) > 0 }

// upgrades checks what a route says of connections that last.
func (v *validator) upgrades(f string, r Route) {
	for i, u := range v.within(f+".upgrades", r.Upgrades, 1) {
		v.oneOf(fmt.Sprintf("%s.upgrades[%d]", f, i), u, WebSocket)
	}
	v.duration(f+".lifetime", r.Lifetime)
	if r.Lifetime != "" && !r.LongLived() {
		v.add(f+".lifetime", "is of a route whose requests do not last", "streaming: true or upgrades: [websocket]; timeout bounds other requests")
	}
	if len(r.Upgrades) == 0 {
		return
	}
	beside := func(field string, stands bool, remedy string) {
		if stands {
			v.add(f+"."+field, "stands beside upgrades", remedy)
		}
	}
	beside("methods", len(r.Methods) > 0 && !slices.Contains(r.Methods, "GET"), "GET among them, with which connections are opened")
	beside("respond", r.Respond != nil, "a product")
	beside("body_limit", r.BodyLimit > 0, "nothing: a connection has no body; connections and lifetime bound it")
	beside("chat_caps", r.ChatCaps, "a route of its own")
	beside("validate", r.ChecksBody(), "a route of its own for requests with a body")
	beside("price", r.Price != "", "a route of its own for what is sold by the request")
}

// connections checks the numbers of connections in a limit.
func (v *validator) connections(f string, account, key uint32) {
	most := fmt.Sprintf("at most %d", maxConnections)
	if account > maxConnections {
		v.add(f+".connections", "is too large", most)
	}
	if key > maxConnections {
		v.add(f+".connections_per_key", "is too large", most)
	}
}

// limitsConnections reports by class whether any plan, or the class itself, limits how
// many connections may be open.
func (d Document) limitsConnections() []bool {
	limited := make([]bool, len(d.Classes))
	for i, c := range d.Classes {
		limited[i] = c.Connections > 0 || c.ConnectionsPerKey > 0
		for _, p := range d.Plans {
			l := p.Limits[c.Name]
			limited[i] = limited[i] || l.Connections > 0 || l.ConnectionsPerKey > 0
		}
	}
	return limited
}

// watch says of each route of p, which are d's in their order and more, what edges do about
// connections that last.
func (d Document) watch(p *policy.Policy) {
	limited := d.limitsConnections()
	for i, r := range d.Routes {
		p.Routes[i].Stream = r.streamOf(limited[p.Routes[i].Class%policy.ShadowClass])
	}
}

// streamOf is what edges do about connections of r that last; limited says whether its
// class has a limit of them. A route that streams is watched only if there is one.
func (r Route) streamOf(limited bool) policy.Stream {
	switch {
	case len(r.Upgrades) > 0:
		return policy.Upgrades
	case r.Streaming && limited && r.Respond == nil:
		return policy.Watched
	}
	return policy.Unwatched
}

// inherit has what a plan leaves out of the connections of a class be as the class says.
func (c Class) inherit(l policy.Limit) policy.Limit {
	if l.Connections == 0 {
		l.Connections = c.Connections
	}
	if l.ConnectionsPerKey == 0 {
		l.ConnectionsPerKey = c.ConnectionsPerKey
	}
	return l
}
