package oauth

import "testing"

// What a client waits for at the token endpoint, without HTTP.
func BenchmarkRefresh(b *testing.B) {
	all := setup(b)
	made := all.tokens(b)
	for b.Loop() {
		next, err := all.service.Refresh(b.Context(), all.secret.App, made.Refresh, "")
		if err != nil {
			b.Fatal(err)
		}
		made = next
		all.clock.Advance(AccessLife) // fewer than maxLive at once
	}
}
