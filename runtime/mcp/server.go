// Package mcp serves the runtime's MCP endpoint: models and completions as tools,
// over Streamable HTTP without sessions, in every protocol version that the
// official SDK speaks.
package mcp

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/mcpserver"
	"sluice.dev/sluice/runtime/access"
)

const (
	name         = "sluice-runtime"
	title        = "Sluice chat runtime"
	instructions = "Use list_models to see the models, and complete to ask one. A call needs an API key or an OAuth access token as bearer token: list_models asks for the scope chat:read, complete for chat:write."
)

// Config says what the tools stand for.
type Config struct {
	Chat      http.Handler // POST /v1/chat/completions, with its guard
	Models    http.Handler // GET /v1/models, with its guard
	Guard     access.Guard
	Adapter   httpapi.Adapter
	PublicURL string   // address that browsers may come from; empty: this machine alone
	Hosts     []string // further names under which it may be called
	Version   string   // of the server
}

// New returns the endpoint.
func New(c Config) http.Handler {
	about := mcpserver.About{Name: name, Title: title, Version: c.Version, Instructions: instructions}
	server := mcpserver.NewServer(about)
	addTools(server, c)
	return mcpserver.New(mcpserver.Config{
		About: about, Server: func(*http.Request) (*sdk.Server, error) { return server, nil },
		Admit: c.Guard.Admit, Adapter: c.Adapter, PublicURL: c.PublicURL, Hosts: c.Hosts,
	})
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
