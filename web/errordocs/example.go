package errordocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/scopes"
)

// exampleID is the request id of examples.
const exampleID = "5f0c2c0e-7a53-4b0e-9c1b-0c7c2d0c5a11"

// window is the one that is full in the example of a rate limit.
var window = ratelimit.Result{Limit: 60, RetryAfter: 21}

// details are what answers with a code say beside it, in examples: by the code that says it
// where that can be called.
var details = map[decision.Code][]decision.Detail{
	decision.AuthRequired:    {apikey.Missing},
	decision.InvalidKey:      {apikey.Malformed(apikey.Prefix).Detail},
	decision.ScopeMissing:    {scopes.Decide(keytable.Scopes{}, keytable.Scopes{}, "orders:write").Detail},
	decision.AddrRefused:     {allowlist.Decide("203.0.113.7:51000", nil).Detail},
	decision.RateLimited:     {authorize.RefuseAddress(window).Detail},
	decision.TooLarge:        {decision.LargeBody(1 << 20)},
	decision.MediaType:       {{Field: "Content-Type", Issue: "is text/plain", Expected: "application/json"}},
	decision.RouteNotMapped:  {{Field: "method", Issue: "POST is not mapped here; this path takes GET", Expected: "GET, HEAD"}},
	decision.ConnectionLimit: {{Field: "connections", Issue: "are all in use", Expected: "at most 5 open at once for the key"}},
	decision.PlanTooLow:      {{Field: "plan", Issue: "free does not include this product", Expected: "voice"}},
	decision.InvalidRequest:  {{Field: "name", Issue: "must not be empty", Expected: "a text of 1 to 100 letters"}, {Field: "limit", Issue: "is out of range", Expected: "1 to 100"}},
	decision.InvalidCert:     {{Field: "certificate", Issue: "is revoked", Expected: "another certificate"}},
}

// headers are what answers with a code have beside the usual ones.
var headers = map[decision.Code]string{
	decision.MethodRefused: "Allow: GET, POST\n",
	decision.RateLimited:   "Retry-After: 21\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\n", decision.EdgeNotReady: "Retry-After: 1\n", decision.Unavailable: "Retry-After: 1\n",
	decision.ConnectionLimit: "Retry-After: 5\n",
}

// Example is an answer with the code, as a client sees it. A code without an HTTP response of its own has
// the record that carries it.
func (e entry) Example() string {
	if e.Status == 0 {
		return "{\n  \"status\": \"failed\",\n  \"error_code\": \"" + string(e.Code) + "\"\n}"
	}
	text := decision.AppendErrors(nil, e.Code, details[e.Code], exampleID, "")
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil { // it is JSON
		b.Write(text)
	}
	more := headers[e.Code]
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		d := decision.Deny(e.Code)
		if list := details[e.Code]; len(list) > 0 {
			d.Detail = list[0]
		}
		if c := decision.Challenge(d, "", "/v1/orders"); c != "" {
			more += "WWW-Authenticate: " + c + "\n"
		}
	}
	return fmt.Sprintf("HTTP/1.1 %d %s\nContent-Type: application/json\nX-Request-ID: %s\n%s\n%s", e.Status, e.StatusText(), exampleID, more, b.String())
}
