package discovery

import (
	"slices"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// Card is the agent card, in the forms of A2A 0.3 and 1.0 at once: each reads
// the fields that it knows and passes over the others. The platform is an agent
// by its tools, so the interface that the card names is that of MCP; the names of
// bindings are open in both versions.
type Card struct {
	// Of both versions.
	Name         string                    `json:"name"`
	Description  string                    `json:"description"`
	Version      string                    `json:"version"`
	Docs         string                    `json:"documentationUrl"`
	Provider     CardProvider              `json:"provider"`
	Capabilities CardCapabilities          `json:"capabilities"`
	Inputs       []string                  `json:"defaultInputModes"`
	Outputs      []string                  `json:"defaultOutputModes"`
	Skills       []CardSkill               `json:"skills"`
	Schemes      map[string]SecurityScheme `json:"securitySchemes"`
	// Of 0.3.
	Protocol   string                `json:"protocolVersion"`
	URL        string                `json:"url"`
	Transport  string                `json:"preferredTransport"`
	Additional []CardTransport       `json:"additionalInterfaces"`
	Security   []map[string][]string `json:"security"`
	Extended   bool                  `json:"supportsAuthenticatedExtendedCard"`
	// Of 1.0.
	Interfaces []CardInterface `json:"supportedInterfaces"`
	// securityRequirements is left out: it is optional, and the libraries disagree
	// about its form (an object with a list of scopes, or the list itself).
}

// CardProvider is who runs the agent.
type CardProvider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// CardCapabilities are A2A's options, none of which a tool needs.
type CardCapabilities struct {
	Streaming bool `json:"streaming"`
	Push      bool `json:"pushNotifications"`
	History   bool `json:"stateTransitionHistory"`
	Extended  bool `json:"extendedAgentCard"`
}

// CardTransport is an interface as 0.3 writes it.
type CardTransport struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

// CardInterface is an interface as 1.0 writes it.
type CardInterface struct {
	URL      string `json:"url"`
	Binding  string `json:"protocolBinding"`
	Protocol string `json:"protocolVersion"`
}

// SecurityScheme is bearer authentication as 0.3 (type and scheme) and 1.0 (the
// member) write it.
type SecurityScheme struct {
	Type   string     `json:"type"`
	Scheme string     `json:"scheme"`
	HTTP   HTTPScheme `json:"httpAuthSecurityScheme"`
}

// HTTPScheme names an HTTP authentication scheme.
type HTTPScheme struct {
	Scheme string `json:"scheme"`
}

// CardSkill is a surface that is there, and its tools.
type CardSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// binding is the name of MCP as a binding.
const binding = "https://modelcontextprotocol.io"

// speaks says plainly what stands at the card's interface.
const speaks = " It is called by its tools, over MCP at the address of the interface: A2A's own messages and tasks (message/send, tasks/get) are not served."

// about says what the platform is: with payments it has all of its own products.
func about(r Registry) string { return what(r) + speaks }

func what(r Registry) string {
	if r.Links.X402 == "" {
		return "An API gateway, with keys, webhooks and usage of its own, and the products behind it."
	}
	return "A live media platform: streams, recordings, clips, schedules and webhooks, through its API and its tools."
}

// NewCard makes the card from a registry: its skills are the product surfaces
// that are available.
func NewCard(r Registry, version string) Card {
	mcp := r.Links.MCP
	c := Card{
		Name: r.Name, Description: about(r),
		Version: version, Docs: r.Links.OpenAPI, Provider: CardProvider{r.Name, r.Links.Gateway},
		Inputs: []string{"application/json"}, Outputs: []string{"application/json"}, Skills: []CardSkill{},
		Schemes:  map[string]SecurityScheme{"bearer": {"http", "bearer", HTTPScheme{"bearer"}}},
		Protocol: "0.3.0", URL: mcp, Transport: binding, Additional: []CardTransport{{mcp, binding}},
		Security:   []map[string][]string{{"bearer": {}}},
		Interfaces: []CardInterface{{mcp, binding, "1.0"}},
	}
	for _, p := range r.Products {
		onGateway := slices.ContainsFunc(p.Routes, func(route ProductRoute) bool { return below(r.Links.Gateway+"/v1", route.URL) })
		if p.State == Available && p.Kind == KindProduct && onGateway {
			c.Skills = append(c.Skills, CardSkill{p.Name, p.Title, p.Description, append([]string{config.Gateway}, p.Scopes...)})
		}
	}
	return c
}
