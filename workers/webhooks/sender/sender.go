// Package sender makes one signed request to a receiver and returns its answer, of
// which it reads a bounded part. It decides nothing and stores nothing.
package sender

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/webhooks/retry"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// Timeout is how long a receiver has for its whole answer (contract 7.4).
const Timeout = 5 * time.Second

// Bounds of what is kept of an answer.
const (
	maxBody        = 1 << 10
	maxHeaders     = 20
	maxHeaderValue = 256
)

// Client is the guarded client; *outbound.Client.
type Client interface {
	Do(ctx context.Context, r outbound.Request) (outbound.Result, error)
	CheckURL(ctx context.Context, raw string) error
}

// Request is one request to make.
type Request struct {
	URL     string
	EventID string
	Body    []byte
	// Secrets sign: the present one first, during a rotation the former one
	// second. None: the request is not signed.
	Secrets [][]byte
	At      time.Time // the attempt's time, which is signed too
}

// Response is what came of it.
type Response struct {
	StatusCode int               // 0: no response
	Headers    map[string]string // the first few, cut short
	Body       []byte            // valid UTF-8 without NUL, at most 1 KiB
	Error      string            // why there is no whole response, for the log of attempts
	Duration   time.Duration
	RetryAfter time.Duration
}

// OK says whether the receiver took the event: a whole answer with a 2xx status.
func (r Response) OK() bool { return r.Outcome().OK() }

// TimedOut says whether the receiver used up its time.
func (r Response) TimedOut() bool { return r.Error != "" && r.Duration >= Timeout }

// Outcome is what retry.Decide wants to know. An answer that breaks off counts
// as none.
func (r Response) Outcome() retry.Outcome {
	if r.Error != "" {
		return retry.Outcome{}
	}
	return retry.Outcome{StatusCode: r.StatusCode, RetryAfter: r.RetryAfter}
}

// Headers returns what the request for r carries, without signatures.
func Headers(eventID string, at time.Time) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	signature.SetIdentity(h, eventID, at)
	return h
}

// Send makes the request. now is the clock, for Retry-After dates.
//
// Of an answer it keeps 1 KiB; see outbound for what is read of it.
func Send(ctx context.Context, c Client, r Request, now func() time.Time) Response {
	h := Headers(r.EventID, r.At)
	if len(r.Secrets) > 0 {
		signature.Set(h, r.Secrets, r.EventID, r.At, r.Body)
	}
	res, err := c.Do(ctx, outbound.Request{URL: r.URL, Header: h, Body: r.Body, Timeout: Timeout})
	out := Response{StatusCode: res.Status, Headers: head(res.Header), Body: text(res.Body), Duration: res.Duration}
	if err != nil {
		out.Error = reason(err)
		return out
	}
	out.RetryAfter = retry.ParseAfter(res.Header.Get("Retry-After"), now())
	return out
}

// reason is the words of the guarded client, which name no address of ours.
func reason(err error) string {
	if f, ok := errors.AsType[*outbound.Failure](err); ok {
		return f.Error()
	}
	return "the request could not be made"
}

// head keeps the first headers by name, each cut short: enough to see what
// answered, too little to fill the log.
func head(h http.Header) map[string]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(map[string]string, min(len(names), maxHeaders))
	for _, name := range names[:min(len(names), maxHeaders)] {
		value := strings.Join(h[name], ", ")
		out[string(text([]byte(name)))] = string(text([]byte(value[:min(len(value), maxHeaderValue)])))
	}
	return out
}

// text makes b fit for a text column: valid UTF-8, no NUL, bounded.
func text(b []byte) []byte {
	s := strings.ReplaceAll(strings.ToValidUTF8(string(b[:min(len(b), maxBody)]), "\uFFFD"), "\x00", "\uFFFD")
	for len(s) > maxBody {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return []byte(s)
}
