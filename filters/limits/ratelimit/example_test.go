package ratelimit_test

import (
	"fmt"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

// Two requests in any 60 seconds: the third waits until the first one has left
// the window.
func ExampleWindow_Take() {
	w := ratelimit.New(ratelimit.AccountID(7, 0))
	limit := ratelimit.Limit{PerMinute: 2}
	const start = 1_800_000_000
	for _, second := range []int64{0, 20, 30, 60} {
		r := w.Take(limit, start+second)
		fmt.Printf("after %2d s: allowed %-5v remaining %d retry after %d s\n", second, r.OK, r.Remaining, r.RetryAfter)
	}
	// Output:
	// after  0 s: allowed true  remaining 1 retry after 0 s
	// after 20 s: allowed true  remaining 0 retry after 0 s
	// after 30 s: allowed false remaining 0 retry after 30 s
	// after 60 s: allowed true  remaining 0 retry after 0 s
}

// A request that another window refuses gives back what it took from this one.
func ExampleWindow_GiveBack() {
	w := ratelimit.New(ratelimit.KeyID(1))
	limit := ratelimit.Limit{PerMinute: 1}
	fmt.Println(w.Take(limit, 1_800_000_000).OK)
	w.GiveBack()
	fmt.Println(w.Take(limit, 1_800_000_001).OK)
	fmt.Println(w.Take(limit, 1_800_000_002).OK)
	// Output:
	// true
	// true
	// false
}

func ExampleResult_AppendState() {
	w := ratelimit.New(ratelimit.AccountID(7, 1))
	r := w.Take(ratelimit.Limit{PerMinute: 5000}, 1_800_000_000)
	r.Policy = "events"
	fmt.Printf("RateLimit-Policy: %s\n", r.AppendPolicy(nil))
	fmt.Printf("RateLimit: %s\n", r.AppendState(nil, 1_800_000_000))
	// Output:
	// RateLimit-Policy: "events";q=5000;w=60
	// RateLimit: "events";r=4999;t=60
}

// A client of IPv6 is limited by its /64; one of IPv4 by its address.
func ExampleAddressID() {
	fmt.Println(ratelimit.AddressID("[2001:db8::1]:4000") == ratelimit.AddressID("[2001:db8::2]:5000"))
	fmt.Println(ratelimit.AddressID("192.0.2.1:4000") == ratelimit.AddressID("192.0.2.2:4000"))
	// Output:
	// true
	// false
}
