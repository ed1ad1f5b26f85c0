// Package mcp is the gateway's MCP server: the operations of the public API as
// tools. A tool calls the gateway in its caller's name, so that the route of the
// operation decides, as for every other request, who may call it, how often, and
// what it costs.
package mcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/mcpserver"
)

// Path is where the endpoint stands on the gateway.
const Path = "/mcp"

// Config says what the server is made of.
type Config struct {
	// Document returns the description of the public API in force (OpenAPI, in
	// JSON or YAML); it says of each operation what its route asks of a caller.
	Document  func(context.Context) ([]byte, error)
	Identity  identity.Verifier
	Respond   httpapi.Adapter
	Gateway   string      // base URL at which the tools call the gateway
	TLS       *tls.Config // whom to believe that it is the gateway; nil: whom the system trusts
	PublicURL string      // address of the gateway as clients see it
	Hosts     []string    // further names under which it may be called
	Version   string      // of the server
	// Client calls the gateway; nil: one that bounds time and follows nothing.
	Client *http.Client
}

// About introduces the server; manifests repeat it.
func About(version string) mcpserver.About {
	return mcpserver.About{Name: "sluice-gateway", Title: "Sluice gateway", Version: version,
		Instructions: "The tools are the operations of the platform's API. Where there are more than a model can read, " + searchTools + " finds them and " + callTool + " calls them. " +
			"Calling one needs an API key or an access token as bearer token, with the scope that the tool's description names. " +
			"Each call counts as a request to its route, beside the message itself."}
}

// New returns the endpoint.
func New(c Config) http.Handler {
	if c.Client == nil {
		c.Client = newClient(c.TLS)
	}
	s := &servers{config: c}
	endpoint := mcpserver.New(mcpserver.Config{
		About: About(c.Version), Server: s.current, Admit: c.admit,
		Adapter: c.Respond, PublicURL: c.PublicURL, Hosts: c.Hosts,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), choiceKey{}, c.chosen(r))))
	})
}

// admit lets through whom an edge has identified. It refuses a request that a
// tool has made: tools that call tools would never end.
func (c Config) admit(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if slices.ContainsFunc(r.Header.Values("Via"), func(v string) bool { return strings.Contains(v, via) }) {
		return nil, apierror.Errorf(decision.InvalidRequest, "A tool cannot call the endpoint that has called it.")
	}
	caller, err := c.Identity.Caller(r)
	if err != nil {
		return nil, err
	}
	return r.WithContext(identity.With(r.Context(), caller)), nil
}

// servers keeps the server of the document in force.
type servers struct {
	config Config
	mu     sync.Mutex
	text   []byte
	server *sdk.Server
}

// current returns the server for the document in force.
func (s *servers) current(r *http.Request) (*sdk.Server, error) {
	text, err := s.config.Document(r.Context())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil || !bytes.Equal(s.text, text) {
		tools, err := newCatalog(s.config, text)
		if err != nil {
			return nil, err
		}
		s.text, s.server = text, tools.server()
	}
	return s.server, nil
}
