package actors

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
)

// prepare makes what the prober needs, and waits until every edge refuses as it
// should: from then on it has to.
func (w *World) prepare(ctx context.Context) error {
	if err := w.unlimit(ctx); err != nil {
		return err
	}
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
	other, err := w.stranger(ctx)
	if err != nil {
		return err
	}
	ended := time.Now().Add(2 * time.Second)
	expired, err := w.shortKey(ctx, ended)
	if err != nil {
		return err
	}
	w.probes = w.catalogue(other, revoked.text, expired, narrow.text, ended)
	var errs []error
	for i := range w.probes {
		for _, e := range w.Fleet.Edges {
			errs = append(errs, w.Fleet.Await(ctx, func() error { return w.refuses(ctx, e, &w.probes[i]) }))
		}
	}
	return errors.Join(errs...)
}

// refuses asks without noting anything.
func (w *World) refuses(ctx context.Context, e fleet.Edge, p *forbidden) error {
	a := w.ask(ctx, p.request(e))
	p.learn(a)
	if a.status != p.status || a.code != p.code {
		return fmt.Errorf("%s: %s is answered %d %s, want %d %s", e.Name, p.what, a.status, a.code, p.status, p.code)
	}
	return nil
}

// learn takes the first refusal by the edge itself for the one that has to come
// always, where there is more than one way to refuse. An answer of a product is
// none, nor is one that says to try again.
func (p *forbidden) learn(a answer) {
	if p.status == 0 && (a.status == http.StatusBadRequest || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden) {
		p.status, p.code = a.status, a.code
	}
}

func (p *forbidden) request(e fleet.Edge) request {
	return request{method: p.method, url: e.Gateway + p.path, key: p.key, headers: p.headers}
}

// shortKey makes a key that is about to expire.
func (w *World) shortKey(ctx context.Context, until time.Time) (string, error) {
	var made struct{ Key string }
	_, _, err := w.Fleet.Admin(ctx, w.Client, 0, http.MethodPost, "accounts/"+w.account+"/keys", "",
		map[string]any{"name": w.name("key"), "scopes": []string{"streams:read"}, "expires_at": until.UTC()}, &made)
	return made.Key, err
}

// probe tries what is forbidden.
func (w *World) probe(ctx context.Context, e fleet.Edge, p forbidden) {
	a := w.ask(ctx, p.request(e))
	w.note(func(s *audit.Seen) {
		s.Probes = append(s.Probes, audit.Probe{Edge: e.Name, What: p.what, At: time.Now(), Status: a.status, Code: a.code, Want: p.status, WantCode: p.code,
			Revoked: p.revoked, Expired: p.expired})
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
