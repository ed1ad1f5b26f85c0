// Package mcp is the runtime's MCP endpoint: models and completions as tools,
// over Streamable HTTP without sessions, in every protocol version that the
// official SDK speaks.
package mcp

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/runtime/access"
)

const (
	name         = "sluice-runtime"
	title        = "Sluice chat runtime"
	instructions = "Use list_models to see the models, and complete to ask one. Calling a tool needs an API key as bearer token."
	// describes is the protocol version that a description without a handshake
	// is given in: the newest that has one.
	describes = "2025-11-25"
	maxBody   = 1 << 20
)

// Config says what the tools stand for.
type Config struct {
	Chat      http.Handler // POST /v1/chat/completions, with its guard
	Models    http.Handler // GET /v1/models, with its guard
	Guard     access.Guard
	Adapter   respond.Adapter
	PublicURL string // address that browsers may come from; empty: that of the request
	Version   string // of the server
}

// Handler serves /mcp.
type Handler struct {
	Config
	rpc http.Handler
}

// New returns the endpoint.
func New(c Config) *Handler {
	// Capabilities are set so that logging, the SDK's default, is not offered.
	server := sdk.NewServer(&sdk.Implementation{Name: name, Title: title, Version: c.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	addTools(server, c)
	return &Handler{c, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // edges call over loopback in the name of public hosts; see ours
	})}
}

// ServeHTTP serves the descriptions and the calls.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if !h.ours(r) {
			return controlplane.Errorf(decision.AddrRefused, "The Origin header names another site.")
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			return h.describe(w, r)
		case http.MethodPost:
			return h.call(w, r)
		}
		w.Header().Set("Allow", "GET, POST")
		return &controlplane.Error{Code: decision.MethodRefused}
	})(w, r)
}

// ours refuses pages of other sites, and pages that a name of theirs, pointed at
// this machine, makes look like ours.
func (h *Handler) ours(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	public, err := url.Parse(h.PublicURL)
	known := err == nil && public.Host != "" && strings.EqualFold(u.Host, public.Host)
	return known || loopback(u.Hostname())
}

// loopback reports whether a host is this machine by a name that nobody else
// can point at it.
func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}

// describe answers GET: what initialize would say, as JSON, for people and plain
// HTTP clients. An MCP client asks for an event stream there, which a server
// without sessions must answer with 405.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		w.Header().Set("Allow", "POST")
		return &controlplane.Error{Code: decision.MethodRefused}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": nil, "result": map[string]any{
		"protocolVersion": describes,
		"capabilities":    map[string]any{"tools": map[string]any{}},
		"serverInfo":      map[string]string{"name": name, "title": title, "version": h.Version},
		"instructions":    instructions,
	}})
	return nil
}

// tool is a tool's handler without its protocol.
type tool[In, Out any] func(ctx context.Context, header http.Header, in In) (Out, error)

// add registers a tool. Its handler sees the headers of the HTTP request: the
// guards behind it ask for the caller themselves.
func add[In, Out any](s *sdk.Server, t *sdk.Tool, f tool[In, Out]) {
	sdk.AddTool(s, t, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		header := http.Header{}
		if req.Extra != nil {
			header = req.Extra.Header
		}
		out, err := f(ctx, header, in)
		return nil, out, err
	})
}
