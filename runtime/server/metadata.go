package server

import (
	"encoding/json"
	"net/http"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// resourceMetadata describes what access tokens are for (RFC 9728 section 2).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Bearer   []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
	Docs     string   `json:"resource_documentation"`
}

// metadata tells clients of OAuth where to get a token for the runtime, or for the part of
// it below path. The gateway issues them. Without a gateway, or an address of its own, the
// runtime is no resource.
func metadata(c Config, path string) func(http.ResponseWriter, *http.Request) error {
	text, err := json.Marshal(resourceMetadata{Resource: c.PublicURL + path, Servers: []string{c.DocsBase}, Scopes: []string{"chat:read", "chat:write"},
		Bearer: []string{"header"}, Name: "Sluice chat runtime", Docs: c.DocsBase + "/docs/runtime"})
	return func(w http.ResponseWriter, _ *http.Request) error {
		if c.PublicURL == "" || c.DocsBase == "" || err != nil {
			return apierror.Errorf(decision.NotFound, "This runtime does not take access tokens.")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*") // clients in browsers look here first
		_, _ = w.Write(text)                               // the client is gone otherwise
		return nil
	}
}
