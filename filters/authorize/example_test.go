package authorize

import (
	"fmt"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// One route that requires the scope streams:read, on a plan of two requests a
// minute, and two keys: one with the scope, one without. The edge is an Env in
// memory; in Envoy it is filters/edge.
func ExampleCheck() {
	const read, now = 0, 1_800_000_000
	p := policy.Parse((&policy.Policy{
		Anonymous: 60, Classes: []string{"default"},
		Plans:  []policy.Plan{{Number: 1, Name: "free", Limits: []policy.Limit{{PerMinute: 2}}}},
		Scopes: []policy.Scope{{Bit: read, Name: "streams:read"}},
		Routes: []policy.Route{{Name: "streams.list", Auth: policy.AuthKey, Scope: "streams:read", Grants: keytable.Scopes{}.With(read)}},
	}).Encode())
	edge := newEdge()
	reader, other := edge.key(1, nil, read), edge.key(2, nil)

	for _, authorization := range []string{"", "Bearer " + other, "Bearer " + reader, "Bearer " + reader, "Bearer " + reader} {
		edge.header = authorization
		v := Check(p, "streams.list", edge, now)
		if v.OK() {
			fmt.Printf("pass, %d of %d left\n", v.Rate.Remaining, v.Rate.Limit)
			continue
		}
		fmt.Println(decision.Lookup(v.Code).Status, v.Code)
	}
	// Output:
	// 401 authentication_required
	// 403 AUTH_002
	// pass, 1 of 2 left
	// pass, 0 of 2 left
	// 429 rate_limit_exceeded
}
