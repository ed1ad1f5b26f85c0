package ratelimit

import "testing"

func TestFieldsOfTheDraft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r             Result
		policy, state string
	}{
		{Result{Policy: "events", Limit: 5000, Remaining: 4999, Reset: 1060}, `"events";q=5000;w=60`, `"events";r=4999;t=60`},
		{Result{Policy: "key", Limit: 3, Reset: 1001}, `"key";q=3;w=60`, `"key";r=0;t=1`},
		{Result{Policy: "address", Limit: 60, Remaining: 60, Reset: 999}, `"address";q=60;w=60`, `"address";r=60;t=0`},
	} {
		if got := string(c.r.AppendPolicy(nil)); got != c.policy {
			t.Errorf("RateLimit-Policy: %s, want %s", got, c.policy)
		}
		if got := string(c.r.AppendState(nil, 1000)); got != c.state {
			t.Errorf("RateLimit: %s, want %s", got, c.state)
		}
	}
}
