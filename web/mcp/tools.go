package mcp

import (
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/web/mcp/toolset"
)

// Keys of what a tool's metadata says about its route.
const (
	metaRoute = "sluice.dev/route"
	metaScope = "sluice.dev/scope"
	metaAuth  = "sluice.dev/auth"
	metaClass = "sluice.dev/rate_class"
)

// described is a tool as agents see it.
func described(t toolset.Tool) *sdk.Tool {
	out := &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description + needs(t.Route), InputSchema: t.Input,
		Meta:        sdk.Meta{metaRoute: t.Method + " " + t.Path, metaAuth: t.Route.Auth},
		Annotations: hints(t.Method)}
	for key, v := range map[string]string{metaScope: t.Route.Scope, metaClass: t.Route.Class} {
		if v != "" {
			out.Meta[key] = v
		}
	}
	return out
}

// needs says in words what the route asks of its caller.
func needs(r toolset.Route) string {
	var words []string
	if r.Scope != "" {
		words = append(words, "Needs scope "+r.Scope+".")
	}
	if !slices.Contains(r.Auth, "key") {
		words = append(words, "Needs a session token; an API key will not do.")
	}
	if len(words) == 0 {
		return ""
	}
	return "\n" + strings.Join(words, " ")
}

// hints say how a method acts, for agents that ask before they act.
func hints(method string) *sdk.ToolAnnotations {
	switch method {
	case "GET":
		return &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false)}
	case "PUT", "DELETE":
		return &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(true)}
	case "PATCH":
		return &sdk.ToolAnnotations{DestructiveHint: new(true)}
	}
	return &sdk.ToolAnnotations{DestructiveHint: new(false)}
}
