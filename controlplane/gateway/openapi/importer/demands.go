package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
)

// demands sets what a route asks of its callers, by the document's security and then
// by x-sluice-*. What is not clear asks for a key. It returns whether requests are to
// be validated.
func (im *importer) demands(r *imported, op document.Operation, secured bool, where string) (validate bool) {
	r.route.Auth = []string{"key"}
	switch {
	case open(op.Security) && secured && im.Open:
		r.route.Auth = []string{"none"}
	case open(op.Security) && secured:
		im.note(where, "operations that are open to anybody: they need a key; --allow-open or x-sluice-auth: none leaves them open")
	default:
		im.secured(r, op.Security, where)
	}
	r.route.BodyLimit = op.MaxBody
	im.extensions(r, op.Extensions, where)
	if slices.Contains(r.route.Auth, "none") {
		r.needs = nil
	}
	if said, ok := op.Extensions["x-sluice-validate"]; ok {
		return said == config.ValidateRequest
	}
	return im.Checks.On
}

// open reports whether one of the alternatives asks for nothing.
func open(list []document.Alternative) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(a document.Alternative) bool { return len(a) == 0 })
}

// secured takes the first alternative with scopes, which is the strictest that a
// route can ask for: it has one scope, whatever credential comes.
func (im *importer) secured(r *imported, list []document.Alternative, where string) {
	tokens, taken := false, false
	for _, a := range list {
		var needs []string
		for _, n := range a {
			needs = append(needs, n.Scopes...)
			tokens = tokens || n.Type == "oauth2" || n.Type == "openIdConnect"
			if n.Type == "mutualTLS" {
				im.note(where, "client certificates: a key is asked for instead")
			}
			if n.Basic {
				im.note(where, "user and password (http basic): a key is asked for instead")
			}
		}
		needs = set(needs)
		switch {
		case len(needs) == 0:
		case !taken:
			r.needs, taken = needs, true
		case !slices.Equal(needs, r.needs):
			im.note(where, "alternatives with other scopes: the first that has scopes counts")
		}
	}
	if tokens {
		r.route.Auth = []string{"key", "token"}
	}
}

// extensions applies x-sluice-*.
func (im *importer) extensions(r *imported, x document.Object, where string) {
	for _, key := range sortedKeys(x) {
		v, ok := x[key], true
		text, _ := v.(string)
		switch key {
		case "x-sluice-auth":
			ok = im.auth(r, v)
		case "x-sluice-scope":
			if ok = text == "" && v != nil || scopes.Valid(text) && !strings.HasSuffix(text, "*"); ok {
				r.needs, r.route.Scope = nil, text
			}
		case "x-sluice-class":
			if ok = productForm.MatchString(text); ok {
				r.route.Class = text
			}
		case "x-sluice-price":
			if n, isNumber := v.(json.Number); isNumber {
				text = n.String()
			}
			r.route.Price, ok = text, text != ""
		case "x-sluice-body-limit":
			n, isNumber := v.(json.Number)
			size, err := strconv.ParseUint(n.String(), 10, 40)
			if ok = isNumber && err == nil; ok {
				r.route.BodyLimit = size
			}
		case "x-sluice-timeout":
			r.route.Timeout, ok = config.Duration(text), text != ""
		case "x-sluice-validate":
			ok = text == config.ValidateRequest || text == "none"
		default:
			im.note(where, "%s: not an extension that Sluice knows", decision.Cut(key, 60))
		}
		if !ok {
			im.note(where, "%s has a value that it cannot have: not applied", key)
		}
	}
	if slices.Contains(r.route.Auth, "none") {
		r.route.Scope = ""
	}
}

// auth reads who gets in: one of the ways or a list of them.
func (im *importer) auth(r *imported, v any) bool {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	var ways []string
	for _, x := range list {
		way, _ := x.(string)
		if !slices.Contains([]string{"key", "token", "session", "none"}, way) {
			return false
		}
		ways = append(ways, way)
	}
	if len(ways) == 0 {
		return false
	}
	r.route.Auth = ways
	r.route.ForwardCredentials = slices.Contains(ways, "session")
	return true
}

// fold gives routes the scopes of the configuration. Where there would be too many,
// there are two: one for what reads and one for all else.
func (im *importer) fold() {
	names := map[string]string{}
	var all []string
	for i := range im.routes {
		r := &im.routes[i]
		if len(r.needs) > 0 {
			r.route.Scope = im.scope(r, names)
		}
		all = append(all, r.route.Scope)
	}
	most := im.MaxScopes
	if most == 0 {
		most = DefaultScopes
	}
	wide := set(all)
	if count := len(config.Document{Scopes: wide}.ScopeNames()); count <= most {
		return
	}
	resource := word(im.Product)
	for i := range im.routes {
		r := &im.routes[i]
		if r.route.Scope == "" {
			continue
		}
		r.route.Scope = resource + ":write"
		if m := r.route.Methods[0]; m == "GET" || m == "HEAD" || m == "OPTIONS" {
			r.route.Scope = resource + ":read"
		}
	}
	im.note(im.Product, "%d scopes, which with their wildcards are more than the %d that edges have room for: folded into %s:read and %s:write", len(wide), most, resource, resource)
}

// scope is the one scope that stands for all that a route needs.
func (im *importer) scope(r *imported, names map[string]string) string {
	key := strings.Join(r.needs, " ")
	if s, ok := names[key]; ok {
		return s
	}
	resource, s := word(im.Product), r.needs[0]
	if len(r.needs) > 1 || !scopes.Valid(s) || strings.HasSuffix(s, "*") || slices.Contains(im.Taken, s) {
		parts := make([]string, len(r.needs))
		for i, n := range r.needs {
			parts[i] = slug(strings.TrimSuffix(n[strings.LastIndexByte(strings.TrimSuffix(n, "/"), '/')+1:], "/"), '_', 40)
		}
		action := strings.Join(parts, "_and_")
		if action == "" || len(resource)+1+len(action) > 64 {
			sum := sha256.Sum256([]byte(key))
			action = strings.TrimRight(action[:min(len(action), max(0, 64-len(resource)-10))], "_") + "_" + hex.EncodeToString(sum[:4])
		}
		s = resource + ":" + strings.TrimPrefix(action, "_")
	}
	if len(r.needs) > 1 {
		im.note(r.route.Methods[0]+" "+r.route.Path, "operations that need several scopes at once: a route asks for one, which stands for all of them")
	}
	if other, ok := im.scopes[s]; ok && other != key { // two that read alike are not one
		sum := sha256.Sum256([]byte(key))
		s = s[:min(len(s), 55)] + "_" + hex.EncodeToString(sum[:4])
	}
	names[key], im.scopes[s] = s, key
	return s
}

// word is a name as the resource of a scope.
func word(product string) string {
	if s := slug(product, '_', 30); s != "" {
		return s
	}
	return "api"
}
