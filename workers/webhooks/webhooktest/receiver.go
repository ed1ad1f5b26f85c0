package webhooktest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Receiver records what it is sent and answers as it is told to.
type Receiver struct {
	URL string
	Got chan Received // everything received, in order

	mu     sync.Mutex
	answer http.HandlerFunc
}

// Received is one request.
type Received struct {
	Header http.Header
	Body   []byte
}

// NewReceiver starts one that answers 204; it stops with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{Got: make(chan Received, 10_000)}
	r.Answer(http.StatusNoContent)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL + "/hook"
	return r
}

// ServeHTTP records the request and answers it.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.Got <- Received{req.Header, body}
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	answer(w, req)
}

// Answer sets the status of the answers from now on, with headers given as
// pairs of name and value.
func (r *Receiver) Answer(status int, headers ...string) {
	r.AnswerWith(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	})
}

// AnswerWith sets the handler of the answers from now on.
func (r *Receiver) AnswerWith(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

// Pending is how many requests have been received and not been looked at.
func (r *Receiver) Pending() int { return len(r.Got) }

// Before makes the receiver call f before its next answers.
func (r *Receiver) Before(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.answer
	r.answer = func(w http.ResponseWriter, req *http.Request) {
		f()
		answer(w, req)
	}
}
