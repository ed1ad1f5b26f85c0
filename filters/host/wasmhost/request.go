package wasmhost

import (
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

var (
	routeName     = []string{"xds", "route_name"}
	sourceAddress = []string{"source", "address"}
)

// RouteName is the name of the route that Envoy has chosen; "" when none. It
// stays until the next call.
func RouteName() string {
	hostBuffer = routeBuffer[:]
	name := property(routeName)
	hostBuffer = nil
	return name
}

// Authorization is the request's Authorization header; "" when it has none. It
// stays until the next call.
func Authorization() string {
	hostBuffer = headerBuffer[:]
	value := Header("authorization")
	hostBuffer = nil
	return value
}

// Peer is what Envoy says of the client's certificate; "" when it says nothing. It
// stays until the next call.
func Peer() string {
	hostBuffer = peerBuffer[:]
	value := Header(clientcert.Header)
	hostBuffer = nil
	return value
}

// ClientAddress is the client's address with its port, as far as trusted
// proxies tell it.
func ClientAddress() string { return property(sourceAddress) }

func property(path []string) string {
	b, err := proxywasm.GetProperty(path)
	if err != nil {
		return ""
	}
	return text(b)
}

// Header is a request header; "" when the request has none.
func Header(name string) string {
	v, err := proxywasm.GetHttpRequestHeader(name)
	if err != nil {
		return ""
	}
	return v
}

// Now is the time in unix seconds.
func Now() int64 { return time.Now().Unix() }

// Millis is the time in unix milliseconds.
func Millis() int64 { return time.Now().UnixMilli() }

// rateValues is where SetRateHeaders writes. One for the VM: TinyGo looks for so
// much room in one piece longer than all else in the filter takes.
var rateValues [256]byte

// SetRateHeaders puts ratelimit.Result.Headers on the response, in place of any that
// the product sent; now is in unix seconds. It allocates nothing, since each
// response has them.
func SetRateHeaders(r ratelimit.Result, now int64) {
	b := rateValues[:0] // all values, one behind the other
	set := func(name string, with []byte) {
		_ = proxywasm.ReplaceHttpResponseHeader(name, text(with[len(b):]))
		b = with
	}
	set(ratelimit.LimitHeader, strconv.AppendUint(b, uint64(r.Limit), 10))
	set(ratelimit.RemainingHeader, strconv.AppendUint(b, uint64(r.Remaining), 10))
	set(ratelimit.ResetHeader, strconv.AppendInt(b, r.Reset, 10))
	set(ratelimit.PolicyHeader, r.AppendPolicy(b))
	set(ratelimit.StateHeader, r.AppendState(b, now))
}

// SetWindowHeader puts the rate-limit header that never changes on an answer of
// the filter itself.
func SetWindowHeader() {
	_ = proxywasm.ReplaceHttpResponseHeader(ratelimit.WindowHeader, ratelimit.WindowValue)
}
