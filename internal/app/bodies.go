package app

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/inflight"
	"sluice.dev/sluice/platform/process/memlimit"
)

// Bounds of all request bodies that a process holds.
const (
	memoryDivisor    = 4         // part of the container's memory
	minDefaultBodies = 32 << 20  // several of the largest
	minBodies        = 4 << 20   // that may be set: what two uploads hold
	defaultBodies    = 512 << 20 // where no limit of memory is known
)

// bodyLimit bounds the request bodies of one process, as middleware for all of its
// surfaces.
type bodyLimit struct {
	pool     *inflight.Pool
	verifier identity.Verifier
}

// bodyLimit registers its metrics too.
func (e Environment) bodyLimit(metrics prometheus.Registerer, verifier identity.Verifier, adapter httpapi.Adapter) (bodyLimit, error) {
	most, err := e.maxBodies(memlimit.Container(os.DirFS("/")))
	if err != nil {
		return bodyLimit{}, err
	}
	pool := inflight.New(inflight.Config{Max: most, Refuse: func(w http.ResponseWriter, r *http.Request, why error) {
		adapter.Error(w, r, bodyError(why))
	}})
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_bodies_bytes", Help: "Bytes of request bodies that are in flight."}, func() float64 { return float64(pool.Bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_bodies_most_bytes", Help: "Bytes of request bodies that may be in flight (SLUICE_MAX_BODIES)."}, func() float64 { return float64(most) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_bodies_refused_total", Help: "Requests refused because too many bytes of bodies were in flight, of all or of their caller.",
		}, func() float64 { return float64(pool.Refused()) }),
	)
	return bodyLimit{pool, verifier}, nil
}

// wrap is the middleware of what edges send requests to.
func (b bodyLimit) wrap(h http.Handler) http.Handler { return b.pool.Wrap(h, b.caller) }

// direct is that of a surface which people reach without an edge: what a request
// says of its caller counts for nothing there.
func (b bodyLimit) direct(h http.Handler) http.Handler {
	return b.pool.Wrap(h, func(r *http.Request) string {
		host, _, _ := net.SplitHostPort(r.RemoteAddr) // the server wrote it
		return "address " + host
	})
}

// caller is the account that an edge has signed for, and else an address: the
// client's where an edge says so, which only edges can where they alone reach this.
func (b bodyLimit) caller(r *http.Request) string {
	if c, err := b.verifier.Caller(r); err == nil && c.Account != "" {
		return "account " + c.Account
	}
	return "address " + identity.ClientAddress(r)
}

// bodyError says to the client why a body was refused.
func bodyError(why error) error {
	switch {
	case errors.Is(why, inflight.ErrTooLarge):
		return &apierror.Error{Code: decision.TooLarge, Cause: why}
	case errors.Is(why, inflight.ErrShare):
		return &apierror.Error{Code: decision.RateLimited, Message: "Too many bytes of your request bodies are being worked on.", RetryAfter: 1, Cause: why}
	}
	return &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: why}
}

// maxBodies is what the environment sets, or else a part of a container's limit.
func (e Environment) maxBodies(limit int64) (int64, error) {
	text := e.Get("SLUICE_MAX_BODIES")
	if text == "" {
		if limit == memlimit.Unlimited {
			return defaultBodies, nil
		}
		return max(limit/memoryDivisor, minDefaultBodies), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < minBodies {
		return 0, fmt.Errorf("SLUICE_MAX_BODIES is %q: expected a number of bytes, %d or more", text, minBodies)
	}
	return n, nil
}
