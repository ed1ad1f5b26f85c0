package mcpserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// call hands a JSON-RPC message on. Only messages that call a tool need a
// caller. It takes time linear in the message, of 1 MiB at most, and memory of at
// most 64 bytes for each of its bytes, the SDK's reading included.
func (e *Endpoint) call(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	if bad := httpapi.CheckJSON(body); len(bad) > 0 {
		rpcError(w, http.StatusBadRequest, parseError, "Parse error: "+bad[0].Field+" "+bad[0].Issue)
		return nil
	}
	// The tools' own handlers ask again; this one answers with the HTTP status
	// that clients know how to handle.
	if callsTool(body, jsonscan.Root(body)) {
		if r, err = e.Admit(w, r); err != nil {
			return err
		}
	}
	server, err := e.Server(r)
	if err != nil {
		return err
	}
	r = r.Clone(context.WithValue(context.WithValue(r.Context(), serverKey{}, server), httpKey{}, r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Accept", "application/json, text/event-stream") // the SDK wants both, and answers JSON
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	out := &plain{ResponseWriter: w}
	e.rpc.ServeHTTP(out, r)
	out.finish()
	return nil
}

// callsTool reports whether a message, or one of a batch, has a method of
// tools/call in any spelling that any parser may take for it. It takes time linear
// in the message: of what stands deeper it looks at arrays within arrays only,
// each once for every array around it, 64 at most.
func callsTool(b []byte, v jsonscan.Value) bool {
	kind := v.Kind(b)
	if kind != jsonscan.Object && kind != jsonscan.Array {
		return false
	}
	for w := jsonscan.Members(b, v); w.Step(); {
		if kind == jsonscan.Array && callsTool(b, w.Value) {
			return true
		}
		if kind == jsonscan.Object && jsonscan.Fold(w.Name, "method") && w.Kind(b) == jsonscan.String &&
			jsonscan.Fold(w.Text(b), "tools/call") {
			return true
		}
	}
	return false
}

// rpcError answers with an error of JSON-RPC. Its id is null: the message was
// not read far enough to know it.
func rpcError(w http.ResponseWriter, status, code int, message string) {
	httpapi.JSON(w, status, map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message}})
}

// plain turns the SDK's errors in plain text into JSON-RPC errors.
type plain struct {
	http.ResponseWriter
	status int
	text   strings.Builder
}

// Unwrap lets a ResponseController find the writer behind.
func (p *plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader holds an error in plain text back.
func (p *plain) WriteHeader(status int) {
	if status >= 400 && !strings.HasPrefix(p.Header().Get("Content-Type"), "application/json") {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write collects the text of an error.
func (p *plain) Write(b []byte) (int, error) {
	if p.status == 0 {
		return p.ResponseWriter.Write(b)
	}
	if p.text.Len() < 1000 {
		p.text.Write(b)
	}
	return len(b), nil
}

// finish sends the error that was held back, if there is one.
func (p *plain) finish() {
	if p.status != 0 {
		p.Header().Del("Content-Length")
		rpcError(p.ResponseWriter, p.status, invalidRequest, strings.TrimSpace(p.text.String()))
	}
}
