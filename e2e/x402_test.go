package e2e

import (
	"net/http"
	"testing"
)

// quoted is a 402 as clients of the payment protocol read it.
type quoted struct {
	X402Version int
	Error, Code string
	RequestID   string `json:"request_id"`
	Accepts     []requirement
}

type requirement struct {
	Scheme            string         `json:"scheme"`
	Network           string         `json:"network"`
	MaxAmountRequired string         `json:"maxAmountRequired"`
	Resource          string         `json:"resource"`
	Description       string         `json:"description"`
	MimeType          string         `json:"mimeType"`
	PayTo             string         `json:"payTo"`
	MaxTimeoutSeconds int64          `json:"maxTimeoutSeconds"`
	Asset             string         `json:"asset"`
	Extra             map[string]any `json:"extra"`
}

func TestPricedRouteQuotes(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	r := call(t, http.MethodPost, s.url("/v1/clips?a=b"), "", map[string]any{"source_url": "https://example.com/film.mp4"})
	wantStatus(t, r, http.StatusPaymentRequired)
	wantHeaders(t, r)
	q := into[quoted](t, r)
	if q.X402Version != 1 || q.Code != "payment_required" || q.Error == "" || q.RequestID != r.Header.Get("X-Request-ID") || len(q.Accepts) != 1 {
		t.Fatalf("%s", r.body)
	}
	if a := q.Accepts[0]; a.MaxAmountRequired != "10000" || a.Network != "base-sepolia" || a.Resource != s.url("/v1/clips") {
		t.Errorf("%+v", a)
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", r.Header)
	}
	wantError(t, call(t, http.MethodPost, s.url("/v1/clips"), unknownKey, map[string]any{}), 401, "invalid_api_key")
	wantStatus(t, call(t, http.MethodPost, s.url("/v1/clips"), s.dev["SLUICE_API_KEY"], map[string]any{}), http.StatusBadRequest)
}
