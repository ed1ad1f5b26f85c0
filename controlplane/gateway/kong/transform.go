package kong

import (
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// redirect is where the plugin of that name sends callers; why says why that cannot be
// expressed.
func (i *importer) redirect(p *node) (to *config.Redirect, why string) {
	c := p.get("config")
	location, keep := c.str("location"), c.is("keep_incoming_path", false)
	status, ok := c.number("status_code")
	if !ok {
		status = 301
	}
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, "leads to a location that cannot be expressed: it must have a host, and no query"
	}
	to = &config.Redirect{Status: uint32(min(max(status, 0), 1000)), Scheme: u.Scheme, Host: u.Host}
	if !keep {
		if to.Path = u.EscapedPath(); to.Path == "" {
			to.Path = "/"
		}
		i.noteAt(Differs, p, "redirects keep the query of the request")
	}
	return to, ""
}

// transform has r change headers as the plugins that do so for route n of service s.
func (i *importer) transform(s, n *node, r *config.Route) {
	if p, _ := i.plugins.of("request-transformer", s, n); p != nil {
		r.RequestHeaders = i.edit(p, false)
	}
	if p, _ := i.plugins.of("response-transformer", s, n); p != nil {
		r.ResponseHeaders = i.edit(p, true)
	}
}

// edit is what a plugin does to headers; nil: nothing that can be expressed. All else that
// it does is noted.
func (i *importer) edit(p *node, answers bool) *config.HeaderEdit {
	e, c := config.HeaderEdit{Set: map[string]string{}, Add: map[string]string{}}, p.get("config")
	for _, name := range []string{"dots_in_keys", "http_method"} {
		if c.str(name) != "" && name == "http_method" {
			i.noteAt(Differs, p, "the method is not changed")
		}
	}
	for _, action := range []string{"remove", "rename", "replace", "add", "append"} {
		of := c.get(action)
		for _, other := range []string{"body", "querystring", "json", "json_types", "uri"} {
			if f := of.get(other); len(f.items) > 0 || f.text != "" {
				i.noteAt(Differs, p, action+" of "+other+" is not translated: what it did, it does no more")
				f.ignore()
			}
		}
		for _, text := range of.strs("headers") {
			i.editHeader(p, &e, action, text, answers)
		}
	}
	if len(e.Set)+len(e.Add)+len(e.Remove) == 0 {
		return nil
	}
	return &e
}

func (i *importer) editHeader(p *node, e *config.HeaderEdit, action, text string, answers bool) {
	name, value, _ := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	_, set := e.Set[name]
	_, added := e.Add[name]
	template := strings.NewReplacer("{", "{{", "}", "}}").Replace(value)
	_, err := config.ParseTemplate(template)
	issue, _ := config.HeaderFault(name, answers)
	switch {
	case issue != "":
		i.noteAt(Differs, p, "the header "+name+" cannot be changed: it "+issue)
	case slices.ContainsFunc(i.doc.KeyHeaders, func(h string) bool { return strings.EqualFold(h, name) }):
		i.noteAt(Differs, p, "the header "+name+" may hold a key, which services do not get")
	case action == "remove" && !set && !added && !slices.Contains(e.Remove, name):
		e.Remove = append(e.Remove, name)
	case strings.Contains(value, "$("):
		i.noteAt(Differs, p, action+" of the header "+name+" is not translated: see the names that values may have in docs/rollouts.md")
	case err != nil || value == "" || set || added || slices.Contains(e.Remove, name) || action == "rename" || action == "replace":
		i.noteAt(Differs, p, action+" of the header "+name+" is not translated")
	case action == "append":
		e.Add[name] = template
	default:
		e.Set[name] = template
		i.noteAt(Differs, p, "the header "+name+" replaces one that is there, which add left alone")
	}
}
