package decision

import "strings"

// metadata is where OAuth clients read how to get a token for a resource; the
// path of the resource follows (RFC 9728 section 3.1).
const metadata = "/.well-known/oauth-protected-resource"

// mcpPath is the one resource that has metadata of its own: clients of MCP look
// for them by its path.
const mcpPath = "/mcp"

// Challenge returns the WWW-Authenticate header for d (RFC 6750 section 3, RFC
// 9728 section 5.1); empty: a response with d's status has none. base is the
// public address of the gateway, path that of the request.
func Challenge(d Decision, base, path string) string {
	c := `Bearer realm="sluice"`
	switch d.Code {
	case InvalidKey, InvalidToken, TokenExpired:
		c += `, error="invalid_token"`
	case ScopeMissing:
		c += `, error="insufficient_scope"`
		if d.Detail.Field == "scope" && d.Detail.Expected != "" {
			c += `, scope="` + d.Detail.Expected + `"`
		}
	default:
		if Lookup(d.Code).Status != 401 {
			return ""
		}
	}
	if base == "" {
		return c
	}
	path, _, _ = strings.Cut(path, "?")
	if path != mcpPath {
		path = ""
	}
	return c + `, resource_metadata="` + base + metadata + path + `"`
}
