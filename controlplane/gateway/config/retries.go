package config

import (
	"fmt"
	"slices"
	"time"
)

// Retries are how a route's requests are sent again, in place of what its product says.
type Retries struct {
	// Attempts is how often a request is sent again at most, for what the product
	// cannot have seen, or a method that is safe: 2.
	Attempts *uint32 `json:"attempts,omitempty"`
	// On lists answers after which a request of a safe method is sent again too:
	// statuses such as 503.
	On         []uint32 `json:"on,omitempty"`
	TryTimeout Duration `json:"try_timeout,omitempty"` // of one attempt; none but the route's
	// AnyMethod says that the product does nothing twice for a request that comes
	// twice: one of any method is sent again as one of a safe method is.
	AnyMethod bool `json:"any_method,omitempty"`
}

const (
	maxAttempts = 10
	maxRetryOn  = 20
	// DefaultTimeout is that of routes that do not say one.
	DefaultTimeout = 30 * time.Second
)

// retriable reports whether sending a request again may help against a status.
func retriable(status uint32) bool {
	return status >= 500 && status <= 599 || slices.Contains([]uint32{408, 425, 429}, status)
}

// retries checks how requests of a route are sent again.
func (v *validator) retries(f string, r Route) {
	t := r.Retries
	if t == nil {
		return
	}
	if r.Product == "" {
		v.add(f, "stands on a route without a product", "a product")
	}
	if t.Attempts != nil {
		v.upTo(f+".attempts", *t.Attempts, maxAttempts)
	}
	if v.atMost(f+".on", len(t.On), maxRetryOn) {
		for i, status := range t.On {
			if !retriable(status) {
				v.add(fmt.Sprintf("%s.on[%d]", f, i), "is not a status that a retry helps with", "408, 425, 429 or 500 to 599")
			}
		}
	}
	v.duration(f+".try_timeout", t.TryTimeout)
	if whole := r.Timeout.Or(DefaultTimeout); !r.Streaming && t.TryTimeout.Or(0) >= whole {
		v.add(f+".try_timeout", "is not shorter than the route's timeout of "+whole.String(), "a part of it, or a longer timeout")
	}
}
