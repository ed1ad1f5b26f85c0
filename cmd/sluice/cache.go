package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// cacheCommand is `sluice cache`.
func cacheCommand(env app.Environment) *cobra.Command {
	return group("cache", "throw away answers that edges keep", purgeCommand(env))
}

// purgeCommand is `sluice cache purge`: a change of the route's cache.purged, so that it
// reaches every edge as any change does, is in the history, and outlives them.
func purgeCommand(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "purge ROUTE", Short: "throw away what edges keep of a route's answers", Args: cobra.ExactArgs(1), ValidArgsFunction: completeNames(env, "/admin/v1/routes"),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := newClient(env)
			if err != nil {
				return err
			}
			path := "/admin/v1/routes/" + url.PathEscape(args[0])
			answer, tag, err := api.doMatch(c.Context(), http.MethodGet, path, nil, "")
			if err != nil {
				return err
			}
			var route map[string]json.RawMessage
			if err := json.Unmarshal(answer, &route); err != nil {
				return fmt.Errorf("the answer is not a route: %w", err)
			}
			if route["cache"], err = purged(route["cache"], time.Now()); err != nil {
				return fmt.Errorf("route %s %w", args[0], err)
			}
			if _, _, err := api.doMatch(c.Context(), http.MethodPut, path, route, tag); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "what edges keep of %s is thrown away; `sluice edges` shows which have done so\n", args[0])
			return err
		},
	}
}

// purged is what a route says of its cache, with the time at which that was thrown away.
func purged(cache json.RawMessage, at time.Time) (json.RawMessage, error) {
	if cache == nil {
		return nil, fmt.Errorf("has no cache")
	}
	var fields map[string]any
	if err := json.Unmarshal(cache, &fields); err != nil {
		return nil, fmt.Errorf("has a cache that cannot be read: %w", err)
	}
	fields["purged"] = at.UTC().Format(time.RFC3339Nano)
	return json.Marshal(fields)
}
