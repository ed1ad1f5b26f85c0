package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// propagationKeys is how many keys the figures are taken over.
const propagationKeys = 200

// Every new key is accepted and every revoked one refused. How long that takes
// from the API's answer on is printed, not judged: machines differ.
func TestKeysReachTheEdge(t *testing.T) {
	s := theStack(t)
	accepted, refused := make([]time.Duration, 0, propagationKeys), make([]time.Duration, 0, propagationKeys)
	for range propagationKeys {
		key, id := s.makeKey(t, "streams:read")
		accepted = append(accepted, took(func() { s.accepted(t, key) }))
		wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
		refused = append(refused, took(func() { s.refused(t, key) }))
	}
	t.Logf("%d new keys accepted at the edge: %s", propagationKeys, spread(accepted))
	t.Logf("%d revoked keys refused at the edge: %s", propagationKeys, spread(refused))
}

func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func spread(d []time.Duration) string {
	slices.Sort(d)
	at := func(q float64) string {
		return d[min(len(d)-1, int(q*float64(len(d))))].Round(10 * time.Microsecond).String()
	}
	return "p50 " + at(0.5) + ", p99 " + at(0.99) + ", max " + d[len(d)-1].Round(10*time.Microsecond).String()
}
