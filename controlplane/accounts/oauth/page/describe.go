package page

import "strings"

// known are descriptions of scopes, those of contract 3.3 first.
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
	"vod:read":         "List and view your videos",
	"vod:write":        "Upload, change and delete videos",
	"ingest:read":      "See where streams are sent to",
	"ingest:write":     "Create places to send streams to",
	"migration:read":   "See how a move from another provider goes",
	"migration:write":  "Move videos from another provider",
	"chat:read":        "List the models",
	"chat:write":       "Ask models, on your budget",
	"transcribe:write": "Turn speech into text",
	"captions:write":   "Make captions",
	"voice:write":      "Turn text into speech",
	"vision:write":     "Have pictures read",
	"render:write":     "Render videos",
	"transcode:write":  "Convert videos",
	"mux:write":        "Put tracks together",
	"chapters:read":    "See the chapters of your videos",
	"chapters:write":   "Set the chapters of your videos",
	"editor:read":      "See edited videos that are made",
	"editor:write":     "Make videos with the editor",
	"phone:read":       "See your telephone lines and calls",
	"phone:write":      "Set up telephone lines, and call with them",
	"schedules:read":   "View schedules",
	"schedules:write":  "Create and change schedules",
	"payments:settle":  "Settle payments for a seller",
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
