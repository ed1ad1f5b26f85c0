package kong

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// service is one of Kong's with its routes.
type service struct {
	node    *node
	product string // ours; empty: it is left out
	made    *config.Product
	base    string // path before that of requests
	host    string // what upstreams get as Host; "": what the client sent
	timeout config.Duration
	routes  []*node
}

// upstream is a list of addresses that services name as their host.
type upstream struct {
	node *node
	list []config.Upstream
	host string // Host for all of them
}

// readUpstreams notes what upstreams say of health; their targets are read where a
// service asks.
func (i *importer) readUpstreams() {
	for _, u := range i.root.each("upstreams") {
		u.get("slots").ignore()
		u.get("healthchecks").ignore()
		u.get("targets")
		if len(u.fields["healthchecks"].safe().names) > 0 {
			i.note(ByHand, u, "healthchecks are not translated: see health and outliers in docs/config.md")
		}
		if a := u.str("algorithm"); a != "" && a != "round-robin" {
			i.note(Differs, u, "the algorithm "+a+" is not translated: addresses take turns, by their weights")
		}
	}
}

// safe is n, or nothing for nil.
func (n *node) safe() *node {
	if n == nil {
		return nothing
	}
	return n
}

// upstreams finds the upstreams, by name, with all their targets.
func (i *importer) upstreams() map[string]upstream {
	found := map[string]upstream{}
	byID := map[string]string{}
	for _, u := range i.root.each("upstreams") {
		name := u.str("name")
		found[name] = upstream{u, i.targets(u.each("targets")), u.str("host_header")}
		byID[u.str("id")] = name
	}
	for _, t := range i.root.each("targets") {
		name := t.ref("upstream")
		if known, ok := byID[name]; ok {
			name = known
		}
		if u, ok := found[name]; ok {
			u.list = append(u.list, i.targets([]*node{t})...)
			found[name] = u
		} else {
			i.note(LeftOut, t, "the target is of no upstream")
		}
	}
	return found
}

// targets are the addresses of an upstream.
func (i *importer) targets(list []*node) (out []config.Upstream) {
	for _, t := range list {
		address := t.str("target")
		if !strings.Contains(address, ":") || strings.HasSuffix(address, "]") {
			address += ":8000"
		}
		weight, given := t.number("weight")
		switch {
		case given && weight == 0:
			i.note(Ignored, t, "a target of weight 0 gets nothing")
		case !config.ValidAddress(address):
			i.note(LeftOut, t, "the target is not host:port")
		default:
			out = append(out, config.Upstream{Address: address, Weight: uint32(min(max(weight, 0), 1000))})
		}
	}
	return out
}

// readServices makes products of services, and routes of theirs.
func (i *importer) readServices() {
	for _, reserved := range []string{config.Unmapped, config.Absent, config.Preflight, config.Repeated} {
		i.names["route "+reserved] = true
	}
	upstreams, byName := i.upstreams(), map[string]*service{}
	for _, n := range i.root.each("services") {
		i.readOwn(n)
		s := i.service(n, upstreams)
		s.routes = n.each("routes")
		i.services = append(i.services, s)
		for _, id := range []string{"name", "id"} {
			if text := n.str(id); text != "" {
				byName[text] = s
			}
		}
	}
	bare := &service{node: &node{kind: object, fields: map[string]*node{}, used: true}}
	for _, r := range i.root.each("routes") {
		name := r.ref("service")
		s := byName[name]
		if s == nil {
			s = bare
		}
		s.routes = append(s.routes, r)
	}
	for _, s := range append(i.services, bare) {
		preserving, before := s.hosts(), len(i.doc.Routes)
		for _, r := range s.routes {
			i.readOwn(r)
			i.route(s, r, preserving)
		}
		switch {
		case s.product == "":
		case len(i.doc.Routes) == before:
			i.note(Ignored, s.node, "no route leads to the service")
		default:
			if !preserving {
				s.made.Host = s.host
			}
			i.doc.Products = append(i.doc.Products, *s.made)
		}
	}
}

// hosts reports whether a route of s passes on the Host that the client sent.
func (s *service) hosts() bool {
	return slices.ContainsFunc(s.routes, func(r *node) bool { return r.is("preserve_host", false) })
}

// address is where a service is, by its url or its parts.
func address(n *node) (scheme, host, path string, port int64, ok bool) {
	scheme, host, path = n.str("protocol"), n.str("host"), n.str("path")
	port, given := n.number("port")
	if text := n.str("url"); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
			return "", "", "", 0, false
		}
		scheme, host, path, given = u.Scheme, u.Hostname(), u.Path, u.Port() != ""
		if given {
			_, err = fmt.Sscan(u.Port(), &port)
		}
		if err != nil {
			return "", "", "", 0, false
		}
	}
	if scheme == "" {
		scheme = "http"
	}
	if !given {
		port = map[bool]int64{true: 443, false: 80}[scheme == "https"]
	}
	return scheme, host, path, port, host != ""
}

// service makes a product of a service; one that cannot be called is left out.
func (i *importer) service(n *node, upstreams map[string]upstream) *service {
	s := &service{node: n, timeout: "60s"}
	for _, name := range []string{"write_timeout", "tls_verify_depth", "tls_sans"} {
		n.get(name).ignore()
	}
	scheme, host, path, port, ok := address(n)
	switch {
	case !n.is("enabled", true):
		i.note(LeftOut, n, "the service is off")
		return s
	case !ok:
		i.note(LeftOut, n, "the service has no address that can be read")
		return s
	case scheme != "http" && scheme != "https":
		i.note(LeftOut, n, "a service of "+scheme+" cannot be expressed")
		return s
	case !config.ValidAddress(net.JoinHostPort(host, fmt.Sprint(port))):
		i.note(LeftOut, n, "its host "+host+" cannot be expressed: letters, digits, dots and dashes; if it is a placeholder, render the file first")
		return s
	}
	p := config.Product{Name: i.name("product ", n.str("name"), "service")}
	s.base, s.host = path, host
	if usual := map[string]int64{"http": 80, "https": 443}[scheme]; port != usual {
		s.host = net.JoinHostPort(host, fmt.Sprint(port))
	}
	if u, ok := upstreams[host]; ok {
		p.Upstreams, s.host = u.list, u.host
		if u.host == "" {
			i.noteAt(Differs, u.node, "addresses of the upstream get the Host that the client sent: set host on the product for another")
		}
	} else {
		p.Upstreams = []config.Upstream{{Address: net.JoinHostPort(host, fmt.Sprint(port))}}
	}
	if scheme == "https" {
		p.TLS = &config.TLS{ServerName: host}
		if !n.is("tls_verify", false) {
			i.noteOnce(Differs, "certificates of services with https are verified: see tls in docs/config.md for those of a CA of your own")
		}
	}
	for _, field := range []string{"client_certificate", "ca_certificates"} {
		if f := n.get(field); f.kind != null {
			f.ignore()
			i.note(ByHand, n, field+": see tls in docs/config.md")
		}
	}
	if d, ok := i.milliseconds(n, "connect_timeout"); ok {
		p.ConnectTimeout = d
	}
	if d, ok := i.milliseconds(n, "read_timeout"); ok {
		s.timeout = d
	}
	i.noteOnce(Differs, "read_timeout became timeout of routes, which is for a whole request: set streaming on routes that answer for longer")
	if retries, ok := n.number("retries"); ok && retries >= 0 {
		r := uint32(min(retries, 10))
		p.Retries = &r
	}
	i.places[p.Name] = n
	s.product, s.made = p.Name, &p
	return s
}

// milliseconds reads a time.
func (i *importer) milliseconds(n *node, field string) (config.Duration, bool) {
	ms, ok := n.number(field)
	if !ok {
		return "", false
	}
	if most := int64(24 * 60 * 60 * 1000); ms < 1 || ms > most {
		i.note(Differs, n, field+" is out of range")
		return "", false
	}
	if ms%1000 == 0 {
		return config.Duration(fmt.Sprintf("%ds", ms/1000)), true
	}
	return config.Duration(fmt.Sprintf("%dms", ms)), true
}

// respond is what a route answers by itself.
func (i *importer) respond(p *node) *config.Respond {
	c := p.get("config")
	for _, name := range []string{"echo", "trigger"} {
		c.get(name).ignore()
	}
	status, ok := c.number("status_code")
	if !ok {
		status = 503
	}
	out := &config.Respond{Status: uint32(min(max(status, 0), 1000)), Body: c.str("body"), ContentType: c.str("content_type")}
	if message := c.str("message"); message != "" && out.Body == "" {
		b, err := json.Marshal(map[string]string{"message": message})
		if err == nil {
			out.Body = string(b)
		}
	}
	return out
}
