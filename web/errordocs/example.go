package errordocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"sluice.dev/sluice/filters/decision"
)

// exampleID is the request id of examples.
const exampleID = "5f0c2c0e-7a53-4b0e-9c1b-0c7c2d0c5a11"

// details are what answers with a code say beside it, in examples.
var details = map[decision.Code][]decision.Detail{
	decision.ScopeMissing:   {{Field: "scope", Issue: "missing", Expected: "orders:write"}},
	decision.RouteNotMapped: {{Field: "method", Issue: "not_mapped", Expected: "GET"}},
	decision.InvalidRequest: {{Field: "name", Issue: "must not be empty", Expected: "a text of 1 to 100 letters"}, {Field: "limit", Issue: "is out of range", Expected: "1 to 100"}},
	decision.InvalidCert:    {{Field: "certificate", Issue: "revoked"}},
}

// headers are what answers with a code have beside the usual ones.
var headers = map[decision.Code]string{
	decision.MethodRefused: "Allow: GET, POST\n",
	decision.RateLimited:   "Retry-After: 21\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\n", decision.EdgeNotReady: "Retry-After: 1\n", decision.Unavailable: "Retry-After: 1\n",
	decision.ConnectionLimit: "Retry-After: 60\n",
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
