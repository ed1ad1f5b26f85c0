// Package mcpserver is what every MCP endpoint of the platform has in common:
// Streamable HTTP without sessions in each protocol version that the official
// SDK speaks, a description for plain clients, an allow-list against pages of
// other sites, and 401 for whoever calls a tool without a credential.
package mcpserver

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

const (
	// Describes is the protocol version that a description without a handshake
	// is given in: the newest that has one.
	Describes = "2025-11-25"
	maxBody   = 1 << 20
)

// Versions are the protocol versions that an endpoint speaks, newest first.
func Versions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// About is how a server introduces itself.
type About struct{ Name, Title, Version, Instructions string }

// NewServer returns a server without tools. Capabilities are set so that
// logging, the SDK's default, is not offered, and prompts are: the SDK answers
// for them, with none, and clients may hold a server to that. What it does for a
// caller ends when the caller leaves.
func NewServer(a About) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: a.Name, Title: a.Title, Version: a.Version}, &sdk.ServerOptions{
		Instructions: a.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}},
	})
	s.AddReceivingMiddleware(untilLeft)
	return s
}

// httpKey is the context's key for the context of the HTTP request.
type httpKey struct{}

// untilLeft ends a handler's context with its HTTP request. The SDK keeps only the
// values of that: a message of a session may be answered by another request, but
// here there are no sessions.
func untilLeft(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if r, ok := ctx.Value(httpKey{}).(context.Context); ok {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(r, cancel)()
			ctx = inner
		}
		return next(ctx, method, req)
	}
}

// Config says what an endpoint serves, and to whom.
type Config struct {
	About About
	// Server returns the server for a request; it may return another one after
	// its tools have changed.
	Server func(*http.Request) (*sdk.Server, error)
	// Admit returns the request with its caller, or refuses it. It is asked
	// before a tool is called.
	Admit   func(http.ResponseWriter, *http.Request) (*http.Request, error)
	Adapter httpapi.Adapter
	// PublicURL is the address that browsers may come from.
	PublicURL string
	// Hosts are further names under which the endpoint may be called.
	Hosts []string
}

// Endpoint serves /mcp.
type Endpoint struct {
	Config
	rpc http.Handler
}

// New returns an endpoint.
func New(c Config) *Endpoint {
	return &Endpoint{c, sdk.NewStreamableHTTPHandler(served, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // edges call over loopback in the name of public hosts; see allowed
	})}
}

// serverKey is the context's key for the server of a request.
type serverKey struct{}

// served returns the server that call has chosen.
func served(r *http.Request) *sdk.Server {
	s, _ := r.Context().Value(serverKey{}).(*sdk.Server)
	return s
}

// ServeHTTP serves the description and the calls.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := e.ours(r); err != nil {
			return err
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			return e.describe(w, r)
		case http.MethodPost:
			return e.call(w, r)
		}
		w.Header().Set("Allow", "GET, POST")
		return &apierror.Error{Code: decision.MethodRefused}
	})(w, r)
}

// describe answers GET: what initialize would say, as JSON, for people and plain
// HTTP clients. An MCP client asks for an event stream there, which a server
// without sessions must answer with 405.
func (e *Endpoint) describe(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		w.Header().Set("Allow", "POST")
		return &apierror.Error{Code: decision.MethodRefused}
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": nil, "result": map[string]any{
		"protocolVersion": Describes,
		"capabilities":    map[string]any{"tools": map[string]any{}, "prompts": map[string]any{}},
		"serverInfo":      map[string]string{"name": e.About.Name, "title": e.About.Title, "version": e.About.Version},
		"instructions":    e.About.Instructions,
	}})
	return nil
}
