package kong

import (
	"regexp"
	"slices"
	"strings"
)

// plugins are those of a file that are on, by name, for all services, for one, or for a
// route. For a request the one of the route counts, else that of its service, else the
// global one.
type plugins struct {
	global, consumers map[string]*node
	services, routes  map[string]map[string]*node // by the name or id of what they belong to
	own               map[*node]map[string]*node  // those that stand in a service or route
}

// of returns the plugin of a name that counts for route r of service s; global says
// that it is that of all.
func (p plugins) of(name string, s, r *node) (found *node, level string) {
	for _, at := range []struct {
		n     *node
		named map[string]map[string]*node
		level string
	}{{r, p.routes, "route"}, {s, p.services, "service"}} {
		if f := p.own[at.n][name]; f != nil {
			return f, at.level
		}
		for _, id := range []string{"name", "id"} {
			if f := at.named[at.n.str(id)][name]; f != nil && at.n.str(id) != "" {
				return f, at.level
			}
		}
	}
	if f := p.global[name]; f != nil {
		return f, "global"
	}
	return nil, ""
}

// readPlugins finds the plugins of the top level. Those for one consumer are looked at
// with that consumer.
func (i *importer) readPlugins() {
	i.plugins = plugins{map[string]*node{}, map[string]*node{}, map[string]map[string]*node{}, map[string]map[string]*node{}, map[*node]map[string]*node{}}
	for _, p := range i.root.each("plugins") {
		name := p.str("name")
		service, route, consumer, group := p.ref("service"), p.ref("route"), p.ref("consumer"), p.ref("consumer_group")
		if !i.counts(p, name) {
			continue
		}
		switch {
		case group != "" || consumer != "" && (service != "" || route != ""):
			i.note(Differs, p, "plugin "+name+" for some consumers alone is not translated")
			p.ignore()
		case consumer != "" && name == "rate-limiting":
			i.plugins.consumers[consumer] = p
		case consumer != "":
			i.note(Differs, p, "plugin "+name+" for one consumer is not translated")
			p.ignore()
		case route != "":
			put(i.plugins.routes, route, name, p)
		case service != "":
			put(i.plugins.services, service, name, p)
		default:
			i.plugins.global[name] = p
		}
	}
	for _, p := range i.plugins.global {
		i.check(p)
	}
	for _, of := range []map[string]map[string]*node{i.plugins.services, i.plugins.routes} {
		for _, named := range of {
			for _, p := range named {
				i.check(p)
			}
		}
	}
}

func put(m map[string]map[string]*node, id, name string, p *node) {
	if m[id] == nil {
		m[id] = map[string]*node{}
	}
	m[id][name] = p
}

// counts reports whether a plugin is on.
func (i *importer) counts(p *node, name string) bool {
	for _, field := range []string{"protocols", "ordering"} {
		p.get(field).ignore()
	}
	if p.is("enabled", true) && name != "" {
		return true
	}
	p.ignore()
	i.note(Ignored, p, "plugin "+name+" is off")
	return false
}

// readOwn finds the plugins that stand in a service or route.
func (i *importer) readOwn(of *node) {
	named := map[string]*node{}
	for _, p := range of.each("plugins") {
		if name := p.str("name"); i.counts(p, name) {
			named[name] = p
			i.check(p)
		}
	}
	i.plugins.own[of] = named
}

// guards keep callers out in ways that nothing here does: a route that has one is left
// out.
var guards = []string{"ip-restriction", "opa", "bot-detection", "mtls-auth", "tls-handshake-modifier", "upstream-oauth", "vault-auth", "header-cert-auth", "websocket-validator"}

// identities say who calls, by other means than keys, and in which way of ours callers
// come in place of them.
var identities = map[string]string{
	"jwt": "token", "openid-connect": "token", "jwt-signer": "token", "oauth2-introspection": "token",
	"oauth2": "key", "basic-auth": "key", "hmac-auth": "key", "ldap-auth": "key", "ldap-auth-advanced": "key", "session": "key", "saml": "key", "key-auth-enc": "key",
}

// needless are plugins of which Sluice does what matters anyway.
var needless = map[string]string{
	"correlation-id": "edges set X-Request-ID on every request and answer",
	"prometheus":     "edges and processes have metrics at /metrics, see docs/operations.md",
	"opentelemetry":  "set SLUICE_OTLP_ENDPOINT, see docs/logs.md",
	"zipkin":         "set SLUICE_OTLP_ENDPOINT, see docs/logs.md",
	"file-log":       "edges log to standard error, see access_log in docs/config.md",
	"http-log":       "edges log to standard error, see access_log in docs/config.md",
	"tcp-log":        "edges log to standard error, see access_log in docs/config.md",
	"udp-log":        "edges log to standard error, see access_log in docs/config.md",
	"syslog":         "edges log to standard error, see access_log in docs/config.md",
	"statsd":         "edges and processes have metrics at /metrics, see docs/operations.md",
	"datadog":        "edges and processes have metrics at /metrics, see docs/operations.md",
}

// translated are plugins that routes and consumers ask for.
var translated = []string{"key-auth", "rate-limiting", "cors", "request-size-limiting", "acl", "request-termination", "redirect", "request-transformer", "response-transformer"}

// check notes a plugin, once, that is not translated or not to the letter.
func (i *importer) check(p *node) {
	name := p.str("name")
	config := p.get("config")
	switch {
	case slices.Contains(translated, name):
		return
	case needless[name] != "":
		i.note(Ignored, p, "plugin "+name+": "+needless[name])
	case slices.Contains(guards, name):
		i.note(ByHand, p, "plugin "+name+" keeps callers out, which cannot be expressed: the routes that it guards are left out")
	case identities[name] == "token":
		i.note(ByHand, p, "plugin "+name+": routes want a token; name who issues them under issuers, see docs/config.md")
	case identities[name] != "":
		i.note(ByHand, p, "plugin "+name+" has no equal: routes want an API key in its place")
	default:
		i.note(Differs, p, "plugin "+name+" is not translated: what it did, it does no more")
	}
	config.ignore()
}

// auth is how route r of service s lets callers in, and whether a plugin keeps out whom
// nothing here would.
func (i *importer) auth(s, r *node) (auth []string, guard string) {
	add := func(way string) {
		if !slices.Contains(auth, way) {
			auth = append(auth, way)
		}
	}
	if p, _ := i.plugins.of("key-auth", s, r); p != nil {
		add("key")
		if i.keyAuth(p) {
			add("none")
		}
	}
	for _, name := range sortedNames(identities) {
		if p, _ := i.plugins.of(name, s, r); p != nil {
			add(identities[name])
		}
	}
	for _, name := range guards {
		if p, _ := i.plugins.of(name, s, r); p != nil {
			guard = name
		}
	}
	if len(auth) == 0 {
		auth = []string{"none"}
	}
	return auth, guard
}

func sortedNames(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// keyAuth reads where keys are sent, and reports whether a request without one passes.
func (i *importer) keyAuth(p *node) (optional bool) {
	c := p.get("config")
	c.get("run_on_preflight").ignore()
	c.get("realm").ignore()
	names := c.strs("key_names")
	if len(names) == 0 {
		names = []string{"apikey"}
	}
	if !c.is("key_in_header", true) {
		i.noteAt(ByHand, p, "key-auth reads keys from the query or the body alone: callers must send them in a header")
	}
	if c.is("key_in_query", true) {
		i.noteOnce(Differs, "keys in the query (?"+names[0]+"=…) are not read, because they end up in logs: callers must send them in a header")
	}
	if c.is("key_in_body", false) {
		i.noteAt(Differs, p, "keys in the body are not read")
	}
	if !c.is("hide_credentials", false) {
		i.noteOnce(Differs, "services do not get callers' keys: set forward_credentials on routes whose service needs them")
	}
	for _, name := range names {
		switch {
		case strings.EqualFold(name, "authorization"):
		case !headerName.MatchString(name):
			i.noteAt(ByHand, p, "the header "+name+" cannot hold a key here: letters, digits and dashes")
		case slices.ContainsFunc(i.doc.KeyHeaders, func(h string) bool { return strings.EqualFold(h, name) }):
		case len(i.doc.KeyHeaders) == 4:
			i.noteAt(ByHand, p, "the header "+name+" is one too many: at most four may hold keys")
		default:
			i.doc.KeyHeaders = append(i.doc.KeyHeaders, name)
		}
	}
	if c.str("anonymous") != "" {
		i.noteAt(Differs, p, "a request without a key passes, as the anonymous consumer did; one with a bad key is refused")
		return true
	}
	return false
}

// noteAt notes something about a plugin that many routes ask for, once.
func (i *importer) noteAt(s Severity, p *node, text string) {
	if key := p.path + " " + text; !i.once[key] {
		i.once[key] = true
		i.note(s, p, text)
	}
}
