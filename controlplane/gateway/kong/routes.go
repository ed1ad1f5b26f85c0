package kong

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// maxPaths bounds the paths of one route.
const maxPaths = 200

// route makes routes of one of Kong's: one or two for each of its paths.
func (i *importer) route(s *service, n *node, preserving bool) {
	name := n.str("name")
	for _, field := range []string{"https_redirect_status_code", "path_handling", "request_buffering", "response_buffering"} {
		f := n.get(field)
		if text := f.text; text == "v1" || field == "request_buffering" && text == "false" || field == "response_buffering" && text == "false" {
			i.note(Differs, n, field+" is not translated: see streaming in docs/config.md")
		}
	}
	template, why := i.template(s, n)
	if why != "" {
		i.note(LeftOut, n, "the route "+why)
		n.ignore()
		return
	}
	strip, preserve := n.is("strip_path", true), n.is("preserve_host", false)
	if priority, ok := n.number("regex_priority"); ok && priority != 0 {
		i.note(Differs, n, "regex_priority is not translated: the more specific path goes first, whatever the order")
	}
	paths := n.strs("paths")
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	if len(paths) > maxPaths {
		i.note(LeftOut, n, fmt.Sprintf("the route has more than %d paths", maxPaths))
		return
	}
	i.noteOnce(Differs, "paths match whole segments: /a is /a and what is below /a/, not /ab")
	for _, path := range paths {
		m, why := translatePath(path, i.format)
		if why != "" {
			i.note(LeftOut, n, "the path "+path+" of the route: "+why)
			continue
		}
		if _, ok := m.rewrite(cmp.Or(m.path, m.under), s.base, strip); !ok && template.Product != "" {
			i.note(LeftOut, n, "the path "+path+" of the route: what it matches cannot be taken away: set strip_path to false")
			continue
		}
		if m.wider {
			i.note(Differs, n, "the path "+path+" became one with variables, which take any segment")
		}
		for _, ours := range []string{m.path, m.under} {
			if ours == "" {
				continue
			}
			r := template
			r.Path = ours
			if r.Product != "" {
				r.Rewrite, _ = m.rewrite(ours, s.base, strip)
				if preserving && !preserve && s.host != "" {
					r.Rewrite = withHost(r.Rewrite, s.host)
				}
			}
			base := name
			if base == "" {
				base = s.product + "-route"
			}
			if ours == m.under && m.path != "" {
				base += ".below"
			}
			r.Name = i.name("route ", base, "route")
			i.places[r.Name] = n
			i.doc.Routes = append(i.doc.Routes, r)
		}
	}
}

// withHost is r with another Host.
func withHost(r *config.Rewrite, host string) *config.Rewrite {
	out := config.Rewrite{Host: host}
	if r != nil {
		out.Path = r.Path
	}
	return &out
}

// template is what all of a route's paths have in common; why says why the route is
// left out.
func (i *importer) template(s *service, n *node) (r config.Route, why string) {
	if p, _ := i.plugins.of("request-termination", s.node, n); p != nil {
		r.Respond = i.respond(p)
	} else if p, _ := i.plugins.of("redirect", s.node, n); p != nil {
		if r.Redirect, why = i.redirect(p); why != "" {
			return r, why
		}
	} else if s.product == "" {
		return r, "leads to no service that can be expressed"
	} else {
		r.Product, r.Timeout = s.product, s.timeout
	}
	if why := condition(n, &r); why != "" {
		return r, why
	}
	var guard string
	if r.Auth, guard = i.auth(s.node, n); guard != "" {
		return r, "is guarded by the plugin " + guard
	}
	open := slices.Contains(r.Auth, "none")
	if open {
		i.noteOnce(Differs, "requests without a credential are limited to 600 a minute from one address: see anonymous_per_minute in docs/config.md")
	}
	r.Class, r.BodyLimit = i.class(s.node, n, open && len(r.Auth) == 1), i.bodyLimit(s.node, n)
	if r.Respond == nil && r.Redirect == nil {
		r.CORS = i.cors(s.node, n)
		i.transform(s.node, n, &r)
	}
	p, _ := i.plugins.of("acl", s.node, n)
	if p == nil {
		return r, ""
	}
	if open {
		return r, "asks for groups of callers whom it does not identify"
	}
	r.Scope, why = i.scopeOf(p)
	return r, why
}

var (
	plainHost = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	method    = regexp.MustCompile(`^[A-Z]{1,20}$`)
)

// condition reads what a route asks of requests besides their paths.
func condition(n *node, r *config.Route) (why string) {
	protocols := n.strs("protocols")
	if len(protocols) > 0 && !slices.Contains(protocols, "http") && !slices.Contains(protocols, "https") {
		return "is of " + protocols[0]
	}
	for _, field := range []string{"snis", "sources", "destinations", "expression"} {
		f := n.get(field)
		if f.kind == scalar && f.text != "" || len(f.items) > 0 {
			f.ignore()
			return "asks for " + field
		}
	}
	for _, h := range n.strs("hosts") {
		h = strings.ToLower(h)
		if !plainHost.MatchString(h) {
			return "asks for the host " + h + ", which cannot be expressed"
		}
		if !slices.Contains(r.Hosts, h) {
			r.Hosts = append(r.Hosts, h)
		}
	}
	for _, m := range n.strs("methods") {
		m = strings.ToUpper(m)
		if !method.MatchString(m) || m == "CONNECT" {
			return "asks for the method " + m
		}
		if !slices.Contains(r.Methods, m) {
			r.Methods = append(r.Methods, m)
		}
	}
	headers := n.get("headers")
	for _, name := range headers.names {
		values := headers.strs(name)
		if len(values) == 0 {
			return "asks for the header " + name + " without a value"
		}
		parts := make([]string, len(values))
		for at, v := range values {
			if expr, ok := strings.CutPrefix(v, "~*"); ok {
				parts[at] = "(?:.*(?:" + expr + ").*)"
			} else {
				parts[at] = regexp.QuoteMeta(v)
			}
		}
		r.Headers = append(r.Headers, config.HeaderMatch{Name: name, Regex: "(?i)(?:" + strings.Join(parts, "|") + ")"})
	}
	return ""
}
