package actors

import (
	"context"
	"fmt"
	"net/http"

	"sluice.dev/sluice/bench/chaos/audit"
)

// perMinute is what the limited key may ask, and less than it does.
const perMinute = 40

// limit makes the key.
func (w *World) limit(ctx context.Context) error {
	a, _ := w.create(ctx, "key", "the limited key", "/v1/auth/keys", w.session, map[string]any{"name": "the limited key", "scopes": []string{"streams:read"}, "rate_limit_per_minute": perMinute})
	var made struct{ Key string }
	if !a.ok() || a.into(&made) != nil {
		return fmt.Errorf("a key with a limit was answered %d %s", a.status, a.code)
	}
	w.limited = made.Key
	return nil
}

// tooOften asks with it.
func (w *World) tooOften(ctx context.Context) {
	e := w.edge()
	a := w.ask(ctx, w.underLimit(e.Gateway))
	w.note(func(s *audit.Seen) {
		s.Limits = append(s.Limits, audit.Limited{Edge: e.Name, Status: a.status, RetryAfter: a.header.Get("Retry-After")})
	})
}

func (w *World) underLimit(gateway string) request {
	return request{method: http.MethodGet, url: gateway + "/v1/streams?limit=1", key: w.limited}
}

// again sees that the limited key is served at every edge when it has asked nothing
// for a minute.
func (w *World) again(ctx context.Context) {
	for _, e := range w.Fleet.Edges {
		got := 0
		_ = w.Fleet.Await(ctx, func() error { // what came of it is in got
			if got = w.ask(ctx, w.underLimit(e.Gateway)).status; got != http.StatusOK {
				return fmt.Errorf("the limited key is answered %d", got)
			}
			return nil
		})
		w.final(e, "the answer to the limited key", "200", fmt.Sprint(got))
	}
}
