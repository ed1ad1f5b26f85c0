package config

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/policy"
)

// taken are headers that mean something else, to edges or to HTTP.
var taken = []string{
	"authorization", "host", "cookie", "connection", "content-type", "content-length", "content-encoding", "transfer-encoding", "te", "trailer", "upgrade",
	"expect", "accept", "accept-encoding", "origin", "referer", "user-agent", "forwarded", "via", "idempotency-key", "if-match", "if-none-match", "range",
	"x-request-id", "x-payment", "payment-signature", "traceparent", "tracestate", "proxy-authorization",
}

// takenPrefixes begin the names of such headers.
var takenPrefixes = []string{"x-sluice-", "x-forwarded-", "x-envoy-", "access-control-", "sec-", "ratelimit"}

// keyHeaders checks the headers that may hold a key.
func (v *validator) keyHeaders(list []string) {
	seen := map[string]bool{}
	for i, h := range v.within("key_headers", list, policy.MaxKeyHeaders) {
		f, name := fmt.Sprintf("key_headers[%d]", i), strings.ToLower(h)
		means := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case !headerForm.MatchString(h):
			v.add(f, "is not the name of a header", "letters, digits and dashes, such as X-API-Key")
		case slices.Contains(taken, name) || slices.ContainsFunc(takenPrefixes, means):
			v.add(f, "means something else", "a header that holds nothing but a key, such as X-API-Key")
		case seen[name]:
			v.add(f, "is given twice", "")
		}
		seen[name] = true
	}
}

// keyHeaders are the document's, as Envoy writes them.
func (d Document) keyHeaders() []string {
	var names []string
	for _, h := range d.KeyHeaders {
		names = append(names, strings.ToLower(h))
	}
	return names
}
