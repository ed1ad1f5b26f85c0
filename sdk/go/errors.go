package sluice

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Error is a refusal: what the API says of it.
//
//	var refused *sluice.Error
//	if errors.As(err, &refused) && refused.Code == "rate_limit_exceeded" { … }
type Error struct {
	Status  int    // of HTTP; 0 where a stream broke off with an error
	Code    string // decide by this one; empty where the answer is not of the gateway's form
	Message string // for people
	// Details are all faults of the request.
	Details          []Detail
	RequestID        string // quote it when you ask for help
	DocumentationURL string // says what to do
	RetryAfter       time.Duration
	Header           http.Header // of the answer
}

// Detail is one fault of a request.
type Detail struct {
	Field    string `json:"field"` // its place, such as url, or timeline.clips[2].in
	Issue    string `json:"issue"`
	Expected string `json:"expected"`
}

// Error is one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Status != 0 {
		fmt.Fprintf(&b, "%d ", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, "%s: ", e.Code)
	}
	b.WriteString(e.Message)
	for _, d := range e.Details {
		fmt.Fprintf(&b, "; %s %s", d.Field, d.Issue)
		if d.Expected != "" {
			fmt.Fprintf(&b, " (expected %s)", d.Expected)
		}
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	return b.String()
}

// maxError is how much of a refusal is read, in bytes: the API writes 16 KiB at most.
const maxError = 64 << 10

// envelope is how the API says that something is refused.
type envelope struct {
	Error *struct {
		Code, Message    string
		Details          []Detail
		RequestID        string `json:"request_id"`
		DocumentationURL string `json:"documentation_url"`
	}
}

// refusal reads an answer that is none of success, and closes it.
func refusal(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	_ = res.Body.Close() // it is read
	e := &Error{
		Status: res.StatusCode, Message: http.StatusText(res.StatusCode), RequestID: res.Header.Get("X-Request-ID"),
		RetryAfter: retryAfter(res.Header, time.Now()), Header: res.Header,
	}
	if err == nil {
		e.read(text)
	}
	return e
}

// read takes what the envelope says, and reports whether text is one.
func (e *Error) read(text []byte) bool {
	var in envelope
	if json.Unmarshal(text, &in) != nil || in.Error == nil {
		return false
	}
	e.Code, e.Message, e.Details, e.DocumentationURL = in.Error.Code, in.Error.Message, in.Error.Details, in.Error.DocumentationURL
	if in.Error.RequestID != "" {
		e.RequestID = in.Error.RequestID
	}
	return true
}
