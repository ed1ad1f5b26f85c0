package actors

import (
	"context"
	"net/http"

	"sluice.dev/sluice/bench/chaos/audit"
)

// flapping is the path of the route that comes and goes.
const flapping = "/v1/flapping"

// Flap publishes a configuration in which one route is there or is not.
func (w *World) Flap(ctx context.Context) {
	replica := 0
	if w.chance(0.5) {
		replica = 1
	}
	d, etag, err := w.document(ctx, replica)
	if err != nil {
		return
	}
	routes, _ := d["routes"].([]any)
	rest := without(routes)
	if len(rest) == len(routes) {
		rest = append(rest, map[string]any{"name": "flapping", "methods": []string{"GET"}, "path": flapping, "auth": []string{"key"}, "scope": "streams:read", "product": "media"})
	}
	d["routes"] = rest
	var put struct{ Version int64 }
	if status, _, err := w.Fleet.Admin(ctx, w.Client, replica, http.MethodPut, "config", etag, d, &put); err == nil && status == http.StatusOK {
		w.note(func(s *audit.Seen) { s.Configs = append(s.Configs, audit.Config{Version: put.Version}) })
	}
}

// unlimit lets clients without a credential ask as often as they like: what they
// may not have is to be refused by policy, not for asking too often.
func (w *World) unlimit(ctx context.Context) error {
	d, etag, err := w.document(ctx, 0)
	if err != nil {
		return err
	}
	d["anonymous_per_minute"] = 1_000_000
	_, _, err = w.Fleet.Admin(ctx, w.Client, 0, http.MethodPut, "config", etag, d, nil)
	return err
}

func (w *World) document(ctx context.Context, replica int) (map[string]any, string, error) {
	var at struct{ Document map[string]any }
	_, etag, err := w.Fleet.Admin(ctx, w.Client, replica, http.MethodGet, "config", "", nil, &at)
	return at.Document, etag, err
}

// without leaves the flapping route out.
func without(routes []any) (rest []any) {
	for _, r := range routes {
		if route, ok := r.(map[string]any); !ok || route["name"] != "flapping" {
			rest = append(rest, r)
		}
	}
	return rest
}
