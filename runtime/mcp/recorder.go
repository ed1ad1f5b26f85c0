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
	over   bool // the answer was longer than maxAnswer
}

// newRecorder returns a recorder for one answer.
func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

// Header returns the answer's header.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }

// maxAnswer bounds an answer: the longest completion, 4,096 tokens in an event
// each, is a fraction of it.
const maxAnswer = 8 << 20

var errTooLong = errors.New("the answer is too long for a tool")

// Write keeps the body, up to maxAnswer; beyond it the handler finds nobody to
// write to, and stops.
func (r *recorder) Write(b []byte) (int, error) {
	if r.body.Len()+len(b) > maxAnswer {
		r.over = true
		return 0, errTooLong
	}
	return r.body.Write(b)
}

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
