package wasmhost

import (
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/ratelimit"
)

var (
	routeName     = []string{"xds", "route_name"}
	sourceAddress = []string{"source", "address"}
)

// RouteName is the name of the route that Envoy has chosen; "" when none.
func RouteName() string { return property(routeName) }

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

// window60 is the length of the rate window as text.
var window60 = strconv.Itoa(ratelimit.Seconds)

// SetRateHeaders puts the rate-limit headers (spec, "Limits") on the response,
// in place of any that the product sent.
func SetRateHeaders(r ratelimit.Result) {
	set := func(name, value string) { _ = proxywasm.ReplaceHttpResponseHeader(name, value) }
	set("x-ratelimit-limit", strconv.FormatUint(uint64(r.Limit), 10))
	set("x-ratelimit-remaining", strconv.FormatUint(uint64(r.Remaining), 10))
	set("x-ratelimit-reset", strconv.FormatInt(r.Reset, 10))
	set("x-ratelimit-window", window60)
}
