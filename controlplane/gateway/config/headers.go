package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HeaderEdit changes the headers of requests on their way to a product, or of its
// answers. What is removed goes first. Values may have {account.id}, {key.id},
// {request.id}, {client.address} and the route's variables in them; {{ and }} stand
// for braces.
type HeaderEdit struct {
	Set    map[string]string `json:"set,omitempty"` // in place of what is there
	Add    map[string]string `json:"add,omitempty"` // beside what is there
	Remove []string          `json:"remove,omitempty"`
}

// TemplatePart is a text, or the name of what stands in its place.
type TemplatePart struct{ Text, Name string }

// What templates may name besides a route's variables.
const (
	AccountID     = "account.id"
	KeyID         = "key.id"
	RequestID     = "request.id"
	ClientAddress = "client.address"
)

var templateNames = []string{AccountID, KeyID, RequestID, ClientAddress}

const (
	maxEdits         = 20
	maxTemplateBytes = 512
	maxTemplateNames = 8
)

// ParseTemplate reads the value of a header. Names in it are not looked at but for
// their form. Its errors say what is wrong in words that follow the name of the field.
//
// It takes time and memory linear in s, of 512 bytes at most.
func ParseTemplate(s string) (parts []TemplatePart, err error) {
	if len(s) > maxTemplateBytes || !valueForm.MatchString(s) {
		return nil, fmt.Errorf("is too long, or not plain text of ASCII in one line")
	}
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, TemplatePart{Text: text.String()})
			text.Reset()
		}
	}
	names := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '{' && s[i] != '}':
			text.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == s[i]:
			text.WriteByte(s[i])
			i++
		case s[i] == '}':
			return nil, errors.New("has a } that closes nothing")
		default:
			name, _, closed := strings.Cut(s[i+1:], "}")
			if !closed || !slices.Contains(templateNames, name) && !variableForm.MatchString("{"+name+"}") {
				return nil, errors.New("has a { that opens no name")
			}
			if names++; names > maxTemplateNames {
				return nil, fmt.Errorf("has more than %d names", maxTemplateNames)
			}
			flush()
			parts = append(parts, TemplatePart{Name: name})
			i += len(name) + 1
		}
	}
	flush()
	return parts, nil
}

// hopByHop are headers that are for one connection alone, or that frame a message.
var hopByHop = []string{"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
	"http2-settings", "content-length", "content-encoding", "x-request-id"}

// What stands for something else, and what to do in place of changing it.
var (
	requestOwners = map[string]string{
		"host": "rewrite.host", "authorization": "forward_credentials, which passes it on", "x-payment": "nothing: products do not get payments",
		"payment-signature": "nothing: products do not get payments", "expect": "nothing: edges answer it", "accept-encoding": "compress, for answers that edges compress",
		"x-forwarded-for": "trusted_proxies; products get the client's address anyway", "x-forwarded-proto": "nothing: edges set it",
		"traceparent": "nothing: edges set it", "tracestate": "nothing: edges set it",
	}
	responseOwners = map[string]string{
		"www-authenticate": "nothing: edges set it", "retry-after": "nothing: the product's passes", "payment-required": "price", "payment-response": "price",
		"x-payment-response": "price",
	}
	ownPrefixes = []string{"x-sluice-", "x-envoy-"}
)

// headerEdits checks what a route changes of headers.
func (v *validator) headerEdits(f string, r Route) {
	if r.RequestHeaders != nil && r.Product == "" {
		v.add(f+".request_headers", "stands on a route without a product", "a product")
	}
	v.headerEdit(f+".request_headers", r, r.RequestHeaders, false)
	v.headerEdit(f+".response_headers", r, r.ResponseHeaders, true)
}

// HeaderFault says why a route may not change a header, of answers or of requests, and
// what to do in its place; issue is empty when it may.
func HeaderFault(name string, answers bool) (issue, expected string) {
	lower := strings.ToLower(name)
	begins := func(prefix string) bool { return strings.HasPrefix(lower, prefix) }
	instead := requestOwners[lower]
	if answers {
		instead = responseOwners[lower]
	}
	switch {
	case !headerForm.MatchString(name):
		return "is not the name of a header", "letters, digits and dashes"
	case slices.Contains(hopByHop, lower):
		return "is of the connection or the message itself, and set by edges", "another header"
	case slices.ContainsFunc(ownPrefixes, begins):
		return "is an edge's own, by which products believe it", "another header"
	case answers && begins("access-control-"):
		instead = "cors"
	case answers && (begins("x-ratelimit-") || begins("ratelimit")):
		instead = "nothing: edges set it"
	}
	if instead != "" {
		return "means something else", instead
	}
	return "", ""
}

func (v *validator) headerEdit(f string, r Route, e *HeaderEdit, answers bool) {
	if e == nil {
		return
	}
	if !v.atMost(f, len(e.Set)+len(e.Add)+len(e.Remove), maxEdits) {
		return
	}
	if len(e.Set)+len(e.Add)+len(e.Remove) == 0 {
		v.add(f, "is empty", "set, add or remove")
	}
	seen := map[string]bool{}
	header := func(at, name string) {
		lower := strings.ToLower(name)
		if issue, expected := HeaderFault(name, answers); issue != "" {
			v.add(at, issue, expected)
		} else if seen[lower] {
			v.add(at, "is given twice", "one of set, add and remove")
		}
		seen[lower] = true
	}
	values := func(field string, of map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			at := f + "." + field + "." + name
			header(at, name)
			v.template(at, r, of[name])
		}
	}
	values("set", e.Set)
	values("add", e.Add)
	for i, name := range e.Remove {
		header(fmt.Sprintf("%s.remove[%d]", f, i), name)
	}
}

// template checks the value of a header.
func (v *validator) template(f string, r Route, value string) {
	parts, err := ParseTemplate(value)
	if err != nil {
		v.add(f, err.Error(), fmt.Sprintf("at most %d characters, with names such as {%s} or {%s}; {{ for a brace", maxTemplateBytes, AccountID, RequestID))
		return
	}
	if value == "" {
		v.add(f, "is empty", "a value, or the name under remove")
	}
	p, err := ParsePath(r.Path)
	if err != nil {
		return
	}
	for _, part := range parts {
		if part.Name == "" || slices.Contains(templateNames, part.Name) {
			continue
		}
		if name, ok := p.lacks(Pattern{{Variable, part.Name}}); !ok {
			v.add(f, "has "+name+", which the route's path has not", "its variables, "+strings.Join(templateNames, ", "))
		}
	}
}

// keyHeaderEdits finds routes that change a header which may hold a key.
func (v *validator) keyHeaderEdits(d Document) {
	if len(d.KeyHeaders) == 0 {
		return
	}
	keys := map[string]bool{}
	for _, h := range d.keyHeaders() {
		keys[h] = true
	}
	for i, r := range d.Routes {
		if e := r.RequestHeaders; e != nil {
			for _, name := range slices.Concat(slices.Sorted(maps.Keys(e.Set)), slices.Sorted(maps.Keys(e.Add)), e.Remove) {
				if keys[strings.ToLower(name)] {
					v.add(fmt.Sprintf("routes[%d].request_headers", i), "changes "+name+", which is among key_headers", "another header: products do not get it without forward_credentials")
				}
			}
		}
	}
}
