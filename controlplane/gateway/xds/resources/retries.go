package resources

import (
	"time"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushosts "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// usualRetries are those of routes that read, of products that say nothing about
// it. They stand once in a table: an edge takes 3 µs to read a policy.
var usualRetries = retries(config.Product{}, "GET")

// unusual returns p for a route that must have its own, and nil where it is the
// usual one.
func unusual(p *route.RetryPolicy) *route.RetryPolicy {
	if proto.Equal(p, usualRetries) {
		return nil
	}
	return p
}

// retriesOf are those that r says, or its product.
func (s *Set) retriesOf(r config.Route, method string) *route.RetryPolicy {
	own := r.Retries
	if own == nil {
		return retries(s.products[r.Product], method)
	}
	if own.AnyMethod {
		method = "GET"
	}
	return retries(config.Product{Retries: own.Attempts, RetryOn: own.On, TryTimeout: own.TryTimeout}, method)
}

// retries lets a request be sent again when the product cannot have seen it;
// also after a reset when doing it twice does no harm.
func retries(p config.Product, method string) *route.RetryPolicy {
	n := uint32(defaultRetries)
	if p.Retries != nil {
		n = *p.Retries
	}
	if n == 0 {
		return &route.RetryPolicy{}
	}
	on := "connect-failure,refused-stream,reset-before-request"
	var statuses []uint32
	if method == "GET" || method == "HEAD" || method == "OPTIONS" {
		on += ",reset"
		if len(p.RetryOn) > 0 {
			on, statuses = on+",retriable-status-codes", p.RetryOn
		}
	}
	var try *durationpb.Duration
	if p.TryTimeout != "" {
		try = durationpb.New(p.TryTimeout.Or(defaultTimeout))
	}
	return &route.RetryPolicy{
		RetryOn: on, NumRetries: u32(n), RetriableStatusCodes: statuses, PerTryTimeout: try,
		RetryBackOff: &route.RetryPolicy_RetryBackOff{
			BaseInterval: durationpb.New(25 * time.Millisecond), MaxInterval: durationpb.New(250 * time.Millisecond),
		},
		// Until health checks know that an address is dead, the next try must not
		// meet it again.
		RetryHostPredicate: []*route.RetryPolicy_RetryHostPredicate{{
			Name:       "previous_hosts",
			ConfigType: &route.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: pack(&previoushosts.PreviousHostsPredicate{})},
		}},
		HostSelectionRetryMaxAttempts: hostSelections,
	}
}

// hostSelections is how often another address is looked for that has not been
// tried yet; where there is but one address, that one is tried again.
const hostSelections = 5
