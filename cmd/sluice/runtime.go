package main

import (
	"context"
	"net/http"
)

// runRuntime serves the chat runtime.
func runRuntime(ctx context.Context, env environment) error {
	return serve(ctx, endpoint{name: "runtime", addr: env.get("SLUICE_RUNTIME_LISTEN"), streams: true, handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
}
