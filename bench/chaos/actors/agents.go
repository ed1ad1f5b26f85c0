package actors

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"sluice.dev/sluice/bench/chaos/audit"
)

// tool uses the API as an agent does: what serves the tool calls the gateway again.
func (w *World) tool(ctx context.Context) {
	e := w.edge()
	r := request{method: http.MethodPost, url: e.Gateway + "/mcp", key: w.key, headers: []string{"Accept", "application/json, text/event-stream"},
		body: map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "listStreams", "arguments": map[string]any{"limit": 1}}}}
	a := w.ask(ctx, r)
	if a.ok() && !used(a.body) {
		a.status = http.StatusBadGateway // the tool says that it failed
	}
	w.tried(audit.Try{Edge: e.Name, What: "POST /mcp (a tool of the API)", Status: a.status, Code: a.code})
}

// used says whether a tool did what it was asked to.
func used(body []byte) bool {
	text := string(body)
	if _, event, is := strings.Cut(text, "data: "); is { // the answer may be a stream of one event
		text = event
	}
	var message struct {
		Result *struct{ IsError bool }
	}
	return json.NewDecoder(strings.NewReader(text)).Decode(&message) == nil && message.Result != nil && !message.Result.IsError
}

// passOn sends a binary body to the runtime, which hands it to the gateway. There
// is no engine for it in a run: the product's word for that is the answer.
func (w *World) passOn(ctx context.Context) {
	e := w.edge()
	r := request{method: http.MethodPost, url: e.Runtime + "/v1/transcribe", key: w.key, body: "sound", headers: []string{"Content-Type", "application/octet-stream"}}
	a := w.ask(ctx, r)
	if a.status == http.StatusNotImplemented {
		a.status = http.StatusOK
	}
	w.judge(r, a)
}
