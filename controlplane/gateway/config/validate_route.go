package config

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxBodyLimit bounds the limit of one request's body: a terabyte.
	maxBodyLimit = 1 << 40
	// maxHeld bounds what an edge may hold of one request.
	maxHeld = 64 << 20
	// maxChecked bounds what it may hold to check it: a check takes longer.
	maxChecked = 16 << 20
)

// maxRespondBytes bounds an answer that edges give by themselves; Envoy refuses
// larger ones.
const maxRespondBytes = 4096

// route checks what a route says by itself.
func (v *validator) route(f string, r Route) {
	v.oneOf(f+".listener", r.Listener, "", Gateway, Runtime)
	if _, err := ParsePath(r.Path); err != nil {
		v.add(f+".path", err.Error(), "such as /orders, /orders/{id} or /orders/*")
	}
	for i, m := range v.within(f+".methods", r.Methods, maxMethods) {
		if !methodForm.MatchString(m) || m == "CONNECT" || slices.Contains(r.Methods[:i], m) {
			v.add(fmt.Sprintf("%s.methods[%d]", f, i), "is not a method, or is given twice", "such as GET, in capitals")
		}
	}
	v.duration(f+".timeout", r.Timeout)
	if most := maxBody(r); r.BodyLimit > most {
		v.add(f+".body_limit", "is too large", fmt.Sprintf("at most %d bytes", most))
	}
	v.upgrades(f, r)
	v.condition(f, r)
	v.rewrite(f+".rewrite", r)
	v.cors(f+".cors", r.CORS)
	v.target(f, r)
	v.redirect(f+".redirect", r)
	v.split(f, r)
	v.mirror(f+".mirror", r)
	v.retries(f+".retries", r)
	v.headerEdits(f, r)
	v.auth(f, r)
	v.shadow(f+".shadow", r)
	v.cache(f+".cache", r)
}

func maxBody(r Route) uint64 {
	switch {
	case r.ChatCaps:
		return maxHeld
	case r.ChecksBody():
		return maxChecked
	}
	return maxBodyLimit
}

func (v *validator) target(f string, r Route) {
	switch {
	case r.Redirect != nil && (r.Respond != nil || r.Product != ""):
		v.add(f+".redirect", "stands beside product or respond", "one of the three")
	case r.Redirect != nil:
	case r.Respond == nil && r.Product == "":
		v.add(f+".product", "is missing", "a product, respond or redirect")
	case r.Respond != nil && r.Product != "":
		v.add(f+".respond", "stands beside product", "one of the two")
	case r.Respond != nil:
		if r.Respond.Status < 200 || r.Respond.Status > 599 {
			v.add(f+".respond.status", "is not a status", "200 to 599")
		}
		if len(r.Respond.Body) > maxRespondBytes {
			v.add(f+".respond.body", "is too large", fmt.Sprintf("at most %d bytes", maxRespondBytes))
		}
		if strings.ContainsFunc(r.Respond.ContentType, func(c rune) bool { return c < ' ' || c > '~' }) {
			v.add(f+".respond.content_type", "is not a header value", "such as application/json")
		}
	}
}

func (v *validator) auth(f string, r Route) {
	if len(r.Auth) == 0 {
		v.add(f+".auth", "is empty", "key, token, session, certificate or none")
	}
	for i, a := range r.Auth {
		v.oneOf(fmt.Sprintf("%s.auth[%d]", f, i), a, "key", "token", "session", AuthCertificate, "none")
	}
	has := func(a string) bool { return slices.Contains(r.Auth, a) }
	if has("session") && !r.ForwardCredentials {
		v.add(f+".forward_credentials", "is off", "true: the product checks session tokens, so it must get them")
	}
	if r.ForwardCertificate && (len(r.Auth) != 1 || !has(AuthCertificate)) {
		v.add(f+".forward_certificate", "stands beside another auth than certificate", "auth: [certificate]: the product would be told of a certificate by which nobody was let in")
	}
	if r.Scope != "" && has("none") {
		v.add(f+".scope", "is asked of a route that is open to anybody", "no scope, or auth without none")
	}
}
