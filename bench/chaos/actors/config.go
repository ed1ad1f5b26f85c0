package actors

import (
	"context"
	"net/http"
	"strings"

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

// steadily is the path of a route that leads to a service of somebody's own, which asks
// no database of ours.
const steadily = "/v1/steady"

// unlimit lets clients without a credential ask as often as they like: what they
// may not have is to be refused by policy, not for asking too often. A drill has the
// route to that service too.
func (w *World) unlimit(ctx context.Context) error {
	d, etag, err := w.document(ctx, 0)
	if err != nil {
		return err
	}
	d["anonymous_per_minute"] = 1_000_000
	if w.Drill {
		products, _ := d["products"].([]any)
		routes, _ := d["routes"].([]any)
		d["products"] = append(products, map[string]any{"name": "steady", "upstreams": []any{map[string]any{"address": strings.TrimPrefix(w.Fleet.Hooks, "http://")}}})
		d["routes"] = append(routes, map[string]any{"name": "steady", "methods": []string{"GET"}, "path": steadily, "auth": []string{"key"}, "scope": "streams:read", "product": "steady"})
	}
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
