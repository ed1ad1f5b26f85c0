package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
)

// recorder keeps the answer of a handler that a tool calls.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// newRecorder returns a recorder for one answer.
func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

// Header returns the answer's header.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write keeps the body.
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// Flush has nobody to flush to.
func (r *recorder) Flush() {}

// failure is the error of an answer that is not 200.
func (r *recorder) failure() error {
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(r.body.Bytes(), &e); err != nil || e.Error.Message == "" {
		return errors.New("the runtime failed")
	}
	return errors.New(e.Error.Code + ": " + e.Error.Message)
}
