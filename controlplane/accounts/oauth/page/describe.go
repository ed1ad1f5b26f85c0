package page

import "strings"

// known are the descriptions of the scopes of contract 3.3.
var known = map[string]string{
	"streams:read":     "List and view your streams",
	"streams:write":    "Create, update and delete streams",
	"analytics:read":   "See analytics and viewer data",
	"recordings:read":  "List and download recordings",
	"recordings:write": "Delete recordings",
	"webhooks:read":    "List webhook configurations",
	"webhooks:write":   "Create and manage webhooks",
	"users:read":       "List the members of your team",
	"users:write":      "Invite and manage members of your team",
	"billing:read":     "See billing and usage",
	"billing:write":    "Update your subscription and payment methods",
	"clips:write":      "Create clips",
}

// Describe says in words what a scope lets an application do.
func Describe(scope string) string {
	if text, ok := known[scope]; ok {
		return text
	}
	resource, action, _ := strings.Cut(scope, ":")
	resource = strings.ReplaceAll(resource, "_", " ")
	switch action {
	case "*":
		return "Do everything with " + resource
	case "read":
		return "View " + resource
	case "write":
		return "Create and change " + resource
	}
	return strings.ReplaceAll(action, "_", " ") + " " + resource
}
