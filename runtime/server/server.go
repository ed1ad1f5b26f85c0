// Package server mounts the routes of the chat runtime on one http.Handler, with the
// middleware of all of them.
package server

import (
	"context"
	"crypto/tls"
	_ "embed"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/runtime/access"
	"sluice.dev/sluice/runtime/catalog"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/echo"
	"sluice.dev/sluice/runtime/landing"
	"sluice.dev/sluice/runtime/mcp"
	"sluice.dev/sluice/runtime/passthrough"
)

// Version is the runtime's own (contract 10.2).
const Version = "1.0.0"

//go:embed openapi.json
var description []byte

// Config says what the runtime is made of.
type Config struct {
	// Targets are the providers. The built-in models are there too, under their
	// own names, unless NoEcho is set.
	Targets []chat.Target
	NoEcho  bool
	// Ledger meters tokens; nil: nothing is metered.
	Ledger chat.Ledger
	// Repeatable keeps answers to requests with an Idempotency-Key; nil: none are kept.
	Repeatable *idempotency.Middleware
	// ScopesAsked is access.Guard.Asked.
	ScopesAsked func(context.Context) bool
	// Secrets, Leads and Own are those of identity.Verifier.
	Secrets func() [][]byte
	// Standalone also serves callers for whom no edge has signed, if they have a
	// bearer token: see access.Guard.
	Standalone bool
	Leads      func(ctx context.Context, product string) bool
	Own        []identity.Secret
	// Now is the clock by which identities end; nil: time.Now.
	Now func() time.Time
	// Gateway is where binary bodies go, for instance http://127.0.0.1:8080.
	Gateway string
	// GatewayTLS says whom to believe that it is the gateway; nil: whom the system
	// trusts.
	GatewayTLS *tls.Config
	// PublicURL is the runtime's address for users; empty: that of the request.
	PublicURL string
	// Hosts are further names under which /mcp may be called.
	Hosts []string
	// DocsBase is the address under which /docs is served; empty: relative.
	DocsBase string
	// Streams is how many completions may be under way, as chat.Config.Places
	// counts them; 0: chat.DefaultPlaces.
	Streams int
	// MaxBody and MaxUpload bound chat requests and binary bodies, in bytes; 0:
	// the packages' defaults.
	MaxBody   int
	MaxUpload int64
	// KeepAlive, FirstEvent and Idle are those of chat.Config.
	KeepAlive, FirstEvent, Idle time.Duration
	Log                         *slog.Logger          // nil: slog.Default
	Metrics                     prometheus.Registerer // nil: not registered
}

// What accounts share besides completions; one has a quarter of either.
const (
	lists   = 64  // lists of models, each of which asks every provider
	uploads = 256 // binary bodies on their way
)

// New returns the runtime. It fails when an address in c does not parse.
func New(c Config) (http.Handler, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	adapter := httpapi.Adapter{DocsBase: c.DocsBase, Log: c.Log}
	guard := access.Guard{Verifier: identity.Verifier{Secrets: c.Secrets, Leads: c.Leads, Own: c.Own, Now: c.Now}, Adapter: adapter, Standalone: c.Standalone, PublicURL: c.PublicURL, Asked: c.ScopesAsked}
	binary, err := passthrough.New(passthrough.Config{Gateway: c.Gateway, TLS: c.GatewayTLS, MaxBody: c.MaxUpload, Adapter: adapter, Verifier: guard.Verifier, Log: c.Log})
	if err != nil {
		return nil, err
	}
	return router(c, adapter, guard, binary), nil
}

// router mounts the routes. The built-in model stands last and under its own names
// only, so that a provider for all other models never hides it.
func router(c Config, adapter httpapi.Adapter, guard access.Guard, binary http.Handler) http.Handler {
	targets := slices.Clone(c.Targets)
	if !c.NoEcho {
		targets = append(targets, chat.Target{Name: "sluice", Provider: echo.Provider{}, Models: echo.Models()})
	}
	if c.Streams <= 0 {
		c.Streams = chat.DefaultPlaces
	}
	completions := chat.NewHandler(chat.Config{
		Pool: chat.NewPool(targets, nil), Places: fairshare.New(fairshare.Config{Places: c.Streams}), Ledger: c.Ledger, Repeatable: c.Repeatable, Adapter: adapter, Log: c.Log, Metrics: c.Metrics,
		MaxBody: c.MaxBody, KeepAlive: c.KeepAlive, FirstEvent: c.FirstEvent, Idle: c.Idle,
	})
	models := access.Share(fairshare.New(fairshare.Config{Places: lists}), adapter, catalog.Catalog{Targets: targets, Adapter: adapter, Log: c.Log})
	bodies := guard.Require(access.Share(fairshare.New(fairshare.Config{Places: uploads}), adapter, binary))
	tools := mcp.New(mcp.Config{Chat: guard.RequireScope("chat:write", completions),
		Models: guard.RequireScope("chat:read", models), Guard: guard, Adapter: adapter, PublicURL: c.PublicURL, Hosts: c.Hosts, Version: Version})
	r := adapter.Router(httpapi.Identify, matchPath, adapter.Recover)
	r.Method(http.MethodPost, "/v1/chat/completions", guard.Require(completions))
	r.Method(http.MethodGet, "/v1/models", guard.Require(models))
	r.Method(http.MethodGet, "/", landing.Handler(landing.Config{PublicURL: c.PublicURL, Docs: c.DocsBase + "/docs/", Model: example(targets)}))
	r.Get("/openapi.json", describe)
	for _, resource := range []string{"", "/mcp"} {
		r.Get("/.well-known/oauth-protected-resource"+resource, adapter.Handle(metadata(c, resource)))
	}
	r.Method(http.MethodGet, "/mcp", tools)
	r.Method(http.MethodPost, "/mcp", tools)
	for _, path := range passthrough.Paths() {
		r.Method(http.MethodPost, path, bodies)
	}
	return r
}

// example is a model for commands to copy.
func example(targets []chat.Target) string {
	for _, t := range slices.Backward(targets) { // the built-in one, which costs nothing, is the last
		for _, m := range t.Models {
			if !strings.HasSuffix(m, "*") {
				return m
			}
		}
	}
	return "MODEL"
}

// Description is the OpenAPI document of the runtime.
func Description() []byte { return description }

// describe answers with the description; it is checked against the routes in
// tests.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description) // the client is gone otherwise
}

// matchPath is a middleware that routes by the decoded path.
func matchPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).RoutePath = r.URL.Path
		next.ServeHTTP(w, r)
	})
}
