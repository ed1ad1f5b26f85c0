package oauth

import (
	"net/http"
	"strings"

	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/platform/http/httpapi"
)

// public is embedded in metadata, which anybody may read and caches may keep.
type public struct{}

// SetHeaders says so to caches and to browsers.
func (public) SetHeaders(h http.Header) {
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Access-Control-Allow-Origin", "*")
}

// serverMetadata describes the authorization server (RFC 8414 section 2).
type serverMetadata struct {
	public
	Issuer            string   `json:"issuer"`
	Authorization     string   `json:"authorization_endpoint"`
	Token             string   `json:"token_endpoint"`
	Revocation        string   `json:"revocation_endpoint"`
	Introspection     string   `json:"introspection_endpoint"`
	JWKS              string   `json:"jwks_uri"`
	Scopes            []string `json:"scopes_supported"`
	ResponseTypes     []string `json:"response_types_supported"`
	ResponseModes     []string `json:"response_modes_supported"`
	GrantTypes        []string `json:"grant_types_supported"`
	ChallengeMethods  []string `json:"code_challenge_methods_supported"`
	TokenAuth         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuth    []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuth []string `json:"introspection_endpoint_auth_methods_supported"`
	IssuerInRedirect  bool     `json:"authorization_response_iss_parameter_supported"`
	RequestURI        bool     `json:"request_uri_parameter_supported"`
}

// resourceMetadata describes what access tokens are for (RFC 9728 section 2).
type resourceMetadata struct {
	public
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	JWKS     string   `json:"jwks_uri"`
	Scopes   []string `json:"scopes_supported"`
	Bearer   []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// jwksPath is where the sessions' keys are published, which sign these tokens too.
const jwksPath = "/.well-known/jwks.json"

// server is GET /.well-known/oauth-authorization-server. Wildcard scopes are not
// advertised: who needs one knows its name.
func (h handlers) server(r *http.Request, _ httpapi.None) (serverMetadata, error) {
	_, offered, err := scoperegistry.LoadOffered(r.Context(), h.service.config.DB)
	if err != nil {
		return serverMetadata{}, err
	}
	base := h.service.config.Issuer
	secret := []string{"client_secret_basic", "client_secret_post"}
	any := append(secret[:2:2], "none")
	return serverMetadata{
		Issuer: base, Authorization: base + "/oauth/authorize", Token: base + "/oauth/token",
		Revocation: base + "/oauth/revoke", Introspection: base + "/oauth/introspect", JWKS: base + jwksPath,
		Scopes: offered.Plain(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ChallengeMethods: []string{"S256"},
		TokenAuth: any, RevocationAuth: any, IntrospectionAuth: secret,
		IssuerInRedirect: true,
	}, nil
}

// resourcePath is where the metadata of the whole API stand; those of a resource
// with a path of its own stand below it (RFC 9728 section 3.1).
const resourcePath = "/.well-known/oauth-protected-resource"

// mcpPath is the resource that clients of MCP ask for a token for. The tools act
// on the rest of the API, so its tokens are the API's.
const mcpPath = "/mcp"

// resource is GET /.well-known/oauth-protected-resource, and with /mcp at its end.
func (h handlers) resource(r *http.Request, _ httpapi.None) (resourceMetadata, error) {
	_, offered, err := scoperegistry.LoadOffered(r.Context(), h.service.config.DB)
	if err != nil {
		return resourceMetadata{}, err
	}
	base := h.service.config.Issuer
	resource := h.service.config.Audience + strings.TrimPrefix(r.URL.Path, resourcePath)
	return resourceMetadata{Resource: resource, Servers: []string{base}, JWKS: base + jwksPath,
		Scopes: offered.Plain(), Bearer: []string{"header"}, Name: "Sluice"}, nil
}
