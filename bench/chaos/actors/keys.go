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

// madeKey is a key that was made during the run.
type madeKey struct {
	name, id, text string
	revoked        time.Time // zero: it works
	unsure         bool      // nobody knows whether it is revoked
}

// newKey makes a key with scopes.
func (w *World) newKey(ctx context.Context, scopes ...string) (*madeKey, error) {
	name := w.name("key")
	a, id := w.create(ctx, "key", name, "/v1/auth/keys", w.session, map[string]any{"name": name, "scopes": scopes})
	var made struct{ Key string }
	if !a.ok() || a.into(&made) != nil {
		return nil, fmt.Errorf("a key was answered %d %s", a.status, a.code)
	}
	return &madeKey{name: name, id: id, text: made.Key}, nil
}

// keyLife makes a key, revokes every second one, and sees that it ends.
func (w *World) keyLife(ctx context.Context) {
	k, err := w.newKey(ctx, "streams:read")
	if err != nil {
		return
	}
	w.mu.Lock()
	w.keys = append(w.keys, k)
	w.mu.Unlock()
	if !w.chance(0.5) {
		return
	}
	gone := w.revoke(ctx, k)
	now := time.Now()
	w.mu.Lock()
	k.revoked, k.unsure = now, !gone
	w.mu.Unlock()
	if !gone {
		return
	}
	for range 8 {
		for _, e := range w.Fleet.Edges {
			w.probe(ctx, e, forbidden{what: "revoked key", method: http.MethodGet, path: "/v1/streams?limit=1", key: k.text, status: 401, code: "invalid_api_key", revoked: now})
		}
		w.sleep(ctx, 2*time.Second)
	}
}

func (w *World) revoke(ctx context.Context, k *madeKey) bool {
	a, unsure := w.insist(ctx, "/v1/auth/keys/"+k.id, request{method: http.MethodDelete, key: w.session})
	return a.ok() || unsure && a.status == http.StatusNotFound
}

// meter makes a key for each edge, under which nothing but reads of that edge are
// counted, and waits until the edges know it.
func (w *World) meter(ctx context.Context) error {
	for _, e := range w.Fleet.Edges {
		k, err := w.newKey(ctx, "streams:read")
		if err != nil {
			return err
		}
		m := &audit.Meter{Name: e.Name, Key: k.id}
		w.mu.Lock()
		w.meters[e.Name] = m
		w.mu.Unlock()
		if err := w.Fleet.Await(ctx, func() error {
			if a := w.read(ctx, e, k.text); a.status != http.StatusOK {
				return fmt.Errorf("%s answers %d to a new key", e.Name, a.status)
			}
			return nil
		}); err != nil {
			return err
		}
		w.receiverKey(e, k.text)
	}
	return nil
}

// receiverKey keeps the text of a meter's key.
func (w *World) receiverKey(e fleet.Edge, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = append(w.keys, &madeKey{name: e.Name, text: text})
}

// read makes one read that is counted.
func (w *World) read(ctx context.Context, e fleet.Edge, key string) answer {
	r := request{method: http.MethodGet, url: e.Gateway + "/v1/streams?limit=1", key: key}
	a := w.ask(ctx, r)
	if a.status != http.StatusUnauthorized { // not before the edge knows the key
		w.judge(r, a)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := w.meters[e.Name]; {
	case a.status == 0 || a.status >= 500: // an edge that is not ready counts nothing
		m.Unanswered++
	case a.status != http.StatusUnauthorized:
		m.Answered++
		w.served[e.Name] = append(w.served[e.Name], time.Now())
	}
	return a
}

// steady asks the service that needs no database. No try is repeated.
func (w *World) steady(ctx context.Context, e fleet.Edge) {
	r := request{method: http.MethodGet, url: e.Gateway + steadily, key: w.key}
	w.judge(r, w.ask(ctx, r))
}

// reader reads at one edge.
func (w *World) reader(e fleet.Edge) (func(context.Context), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.keys {
		if k.name == e.Name {
			return func(ctx context.Context) { w.read(ctx, e, k.text) }, nil
		}
	}
	return nil, errors.New("no key for " + e.Name)
}
