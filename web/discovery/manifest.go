package discovery

import "sluice.dev/sluice/platform/http/mcpserver"

// Manifest says where the MCP server is and how it is reached, for clients that
// look at /.well-known/mcp.json. There is no standard for it: this is the form
// of the MCP registry's server.json, with what a client may want to know before
// it connects beside it.
type Manifest struct {
	Schema       string         `json:"$schema"`
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Description  string         `json:"description"`
	Version      string         `json:"version"`
	Website      string         `json:"websiteUrl"`
	Remotes      []Remote       `json:"remotes"`
	Versions     []string       `json:"protocolVersions"`
	Capabilities map[string]any `json:"capabilities"`
	Instructions string         `json:"instructions"`
	Auth         ManifestAuth   `json:"authentication"`
}

// Remote is one address of the server.
type Remote struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// ManifestAuth says what a caller of tools must bring.
type ManifestAuth struct {
	Required []string `json:"requiredFor"` // methods of MCP
	Schemes  []string `json:"schemes"`
	Metadata string   `json:"resourceMetadata"` // RFC 9728
}

// NewManifest describes the server that stands at a gateway.
func NewManifest(gateway string, about mcpserver.About) Manifest {
	return Manifest{
		Schema: "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
		Name:   "dev.sluice/gateway", Title: about.Title, Description: "The API of the gateway as tools", Version: about.Version,
		Website: gateway + "/openapi.json", Remotes: []Remote{{"streamable-http", gateway + "/mcp"}}, Versions: mcpserver.Versions(),
		Capabilities: map[string]any{"tools": map[string]any{}, "prompts": map[string]any{}}, Instructions: about.Instructions,
		Auth: ManifestAuth{[]string{"tools/call"}, []string{"bearer"}, gateway + "/.well-known/oauth-protected-resource/mcp"},
	}
}
