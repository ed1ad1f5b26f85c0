package httpapi

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
)

// kinds are what the things in a list are called where dropping its s does not say it.
var kinds = map[string]string{
	"vod": "video", "classes": "class", "deliveries": "delivery", "recoveries": "recovery", "schedules": "schedule", "apps": "application",
	"accounts": "account", "lines": "line", "calls": "call", "captions": "captions", "ingest": "stream", "editor": "render", "analytics": "",
	"versions": "version", "revoked": "revoked certificate", "playback": "", "files": "file", "streams": "stream", "client-certificates": "",
	"inputs": "input", "outputs": "output", "payment-methods": "payment method", "errors": "error code", "events": "",
}

// missing says which thing the path of a request names that is not there: "No delivery dlv_1 of
// webhook wh_1 in this account." It is empty where the path names none.
func missing(r *http.Request) string {
	route := chi.RouteContext(r.Context())
	if route == nil {
		return ""
	}
	segments := strings.Split(strings.Trim(route.RoutePattern(), "/"), "/")
	message := ""
	for i := 1; i < len(segments); i++ {
		name, ok := strings.CutSuffix(strings.TrimPrefix(segments[i], "{"), "}")
		kind := kindOf(segments[i-1])
		if !ok || !strings.HasPrefix(segments[i], "{") || kind == "" {
			continue
		}
		id := decision.Cut(chi.URLParam(r, name), decision.MaxName)
		if message != "" {
			message = " of " + message
		}
		message = kind + " " + id + message
	}
	switch {
	case message == "":
		return ""
	case segments[0] == "v1":
		return "No " + message + " in this account."
	}
	return "No " + message + "."
}

// kindOf is what a thing in a list is called; empty: its path does not say.
func kindOf(list string) string {
	if kind, ok := kinds[list]; ok {
		return kind
	}
	if strings.HasPrefix(list, "{") {
		return ""
	}
	return strings.TrimSuffix(list, "s")
}
