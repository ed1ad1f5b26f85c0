package actors

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
)

// forbidden is a request that must be refused.
type forbidden struct {
	what, method, path, key string
	status                  int
	code                    string
	revoked                 time.Time
}

// noStream is the path of a stream that nobody has.
const noStream = "/v1/streams/strm_00000000000000000000"

// prepare makes the keys of the prober, and waits until every edge refuses as it
// should: from then on it has to.
func (w *World) prepare(ctx context.Context) error {
	revoked, err := w.newKey(ctx, "streams:read")
	if err != nil {
		return err
	}
	narrow, err := w.newKey(ctx, "clips:write")
	if err != nil {
		return err
	}
	if !w.revoke(ctx, revoked) {
		return fmt.Errorf("%s cannot be revoked", revoked.name)
	}
	expired, err := w.shortKey(ctx)
	if err != nil {
		return err
	}
	w.probes = []forbidden{
		{what: "no credential", method: http.MethodGet, path: "/v1/streams", status: 401, code: "authentication_required"},
		{what: "revoked key", method: http.MethodGet, path: "/v1/streams", key: revoked.text, status: 401, code: "invalid_api_key"},
		{what: "expired key", method: http.MethodGet, path: "/v1/streams", key: expired, status: 401, code: "AUTH_001"},
		{what: "broken key", method: http.MethodGet, path: "/v1/streams", key: w.key + "x", status: 401, code: "invalid_api_key"},
		{what: "missing scope", method: http.MethodGet, path: "/v1/streams", key: narrow.text, status: 403, code: "AUTH_002"},
		{what: "missing scope to write", method: http.MethodDelete, path: noStream, key: narrow.text, status: 403, code: "AUTH_002"},
		{what: "unmapped route", method: http.MethodGet, path: "/v1/nowhere", key: w.key, status: 403, code: "ROUTE_NOT_MAPPED"},
	}
	for _, e := range w.Fleet.Edges {
		for _, p := range w.probes {
			if err := w.Fleet.Await(ctx, func() error { return w.refuses(ctx, e, p) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuses asks without noting anything.
func (w *World) refuses(ctx context.Context, e fleet.Edge, p forbidden) error {
	a := w.ask(ctx, request{method: p.method, url: e.Gateway + p.path, key: p.key})
	if a.status != p.status || a.code != p.code {
		return fmt.Errorf("%s: %s is answered %d %s, want %d %s", e.Name, p.what, a.status, a.code, p.status, p.code)
	}
	return nil
}

// shortKey makes a key that is about to expire.
func (w *World) shortKey(ctx context.Context) (string, error) {
	var made struct{ Key string }
	_, _, err := w.Fleet.Admin(ctx, w.Client, 0, http.MethodPost, "accounts/"+w.account+"/keys", "",
		map[string]any{"name": w.name("key"), "scopes": []string{"streams:read"}, "expires_at": time.Now().Add(2 * time.Second).UTC()}, &made)
	return made.Key, err
}

// probe tries what is forbidden.
func (w *World) probe(ctx context.Context, e fleet.Edge, p forbidden) {
	a := w.ask(ctx, request{method: p.method, url: e.Gateway + p.path, key: p.key})
	w.note(func(s *audit.Seen) {
		s.Probes = append(s.Probes, audit.Probe{Edge: e.Name, What: p.what, At: time.Now(), Status: a.status, Code: a.code, Want: p.status, WantCode: p.code, Revoked: p.revoked})
	})
}

// prober tries all that is forbidden at one edge, in turn.
func (w *World) prober(e fleet.Edge) func(context.Context) {
	n := 0
	return func(ctx context.Context) {
		w.probe(ctx, e, w.probes[n%len(w.probes)])
		n++
	}
}
