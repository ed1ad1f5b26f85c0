package main

import (
	"strconv"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/host/wasmtest"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/filters/policy"
)

// clock is the time by the clock of the filter's host, in unix milliseconds; the
// module's stands in the past.
func clock(t *testing.T, h proxytest.HostEmulator) int64 {
	t.Helper()
	reset, err := strconv.ParseInt(send(t, h, "health").response["x-ratelimit-reset"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return (reset - 60) * 1000
}

// Of a strict limit an edge uses its share while it does not hear of the others, and
// nothing when it has none.
func TestStrictLimits(t *testing.T) {
	p := policy.Parse(edgePolicy())
	p.Strict, p.Plans[0].Limits[0].PerMinute = []byte{0}, 6
	for name, c := range map[string]struct {
		shares sharedlimit.Shares // Told since now
		pass   int
	}{
		"no share yet":      {sharedlimit.Shares{}, 0},
		"one of two":        {sharedlimit.Shares{Holders: 2, Told: 0}, 3},
		"one of twenty":     {sharedlimit.Shares{Holders: 20, Told: 0}, 0},
		"its lease is over": {sharedlimit.Shares{Holders: 2, Told: -sharedlimit.LeaseMillis - 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			wasmtest.Both(t, "edge", &vm{}, p.Encode(), func(t *testing.T, h proxytest.HostEmulator) {
				if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
					t.Fatal(s, h.GetCriticalLogs())
				}
				load(keyRecord(), secretRecord())
				shares := c.shares
				shares.Told += clock(t, h)
				wasmhost.Shared{}.SetShares(shares)
				for i := range c.pass {
					if r := send(t, h, "streams.list", bearer(key)); r.status != 0 {
						t.Fatalf("request %d: %d", i, r.status)
					}
				}
				r := send(t, h, "streams.list", bearer(key))
				if r.status != 429 || r.response["x-ratelimit-limit"] != "6" || r.response["x-ratelimit-remaining"] != "0" || (r.response["retry-after"] == "1") != (c.pass == 0) {
					t.Errorf("one more: %d %v", r.status, r.response)
				}
			})
		})
	}
}
