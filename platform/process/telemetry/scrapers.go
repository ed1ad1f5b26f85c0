package telemetry

import (
	"crypto/subtle"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Scrapers are those who may read metrics on a listener that others reach too.
type Scrapers struct {
	// Tokens are what scrapers show as bearer tokens, each good by itself. None:
	// metrics are for programs of this machine, without a proxy between.
	Tokens  []string
	Respond httpapi.Adapter
}

// Beside is like the function Beside, but answers anybody else 401.
func (s Scrapers) Beside(h http.Handler, g prometheus.Gatherer) http.Handler {
	open := Beside(h, g)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path && r.Method == http.MethodGet && !s.let(r) {
			s.Respond.Error(w, r, apierror.Errorf(decision.AuthRequired, "Metrics want a token of SLUICE_METRICS_TOKEN as a bearer token."))
			return
		}
		open.ServeHTTP(w, r)
	})
}

// let reports whether r comes from a scraper. It compares in constant time.
func (s Scrapers) let(r *http.Request) bool {
	if len(s.Tokens) == 0 {
		return local(r)
	}
	token, d := apikey.Bearer(r.Header.Get("Authorization"))
	known := 0
	for _, t := range s.Tokens {
		known |= subtle.ConstantTimeCompare([]byte(token), []byte(t))
	}
	return d.OK() && known == 1
}

// local reports whether a program of this machine asks for itself: a proxy here
// that asks for somebody else says so by one of these headers.
func local(r *http.Request) bool {
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip"} {
		if r.Header[h] != nil {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
