// Package sluice is the client of a Sluice gateway: a method for each operation of its
// API, with types made of the same OpenAPI documents as the gateway's reference, and
// what every caller needs around them:
//
//   - Requests that are safe to repeat are repeated, no sooner than Retry-After says. See
//     [WithRetries].
//   - Creates carry an Idempotency-Key of their own, the same in each try.
//   - Methods whose name begins with All go through every page of a list.
//   - Refusals are of type [*Error], with code, details and request id.
//   - [VerifyWebhook] holds what a webhook endpoint receives to its signature.
//   - [Client.CreateChatCompletion] streams a completion.
//
// It needs nothing but the standard library.
package sluice

import (
	"net/http"
	"strings"
	"time"
)

// Version is that of this package, by semantic versioning.
const Version = "0.1.0"

// The bounds of retries.
const (
	defaultRetries = 3
	// longestWait is the longest Retry-After that is waited for: an answer that asks for
	// more is given to the caller at once.
	longestWait = time.Minute
)

// Client calls one gateway with one credential. It is safe for concurrent use.
type Client struct {
	base, runtime, key, agent string
	http                      *http.Client
	retries                   int
	pause                     pause
}

// New makes a client of the gateway at an address such as https://api.example.com, which
// lets in by key: an API key (slk_…), an access token or a person's session.
func New(base, key string, opts ...Option) *Client {
	c := &Client{base: trimmed(base), key: key, agent: "sluice-go/" + Version, http: http.DefaultClient, retries: defaultRetries, pause: sleep}
	for _, o := range opts {
		o(c)
	}
	if c.runtime == "" {
		c.runtime = c.base
	}
	return c
}

func trimmed(base string) string { return strings.TrimRight(base, "/") }

// Option is a setting of a [Client].
type Option func(*Client)

// WithRuntime says where chat completions are served, if not at the gateway's address:
// https://chat.example.com.
func WithRuntime(base string) Option { return func(c *Client) { c.runtime = trimmed(base) } }

// WithHTTPClient has requests made by another client than http.DefaultClient. How long a
// call may take is said by its context; a Timeout here would also end streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithRetries says how often a request is repeated, 3 times by default. What is repeated
// are GET, DELETE and any POST with an Idempotency-Key, after 429, 502, 503, 504 and
// failures of the connection, and after a 409 that says that the first try is still
// under way. A Retry-After of more than a minute is not waited for.
func WithRetries(n int) Option { return func(c *Client) { c.retries = max(n, 0) } }

// WithUserAgent names the program that calls, before the name of this package.
func WithUserAgent(name string) Option { return func(c *Client) { c.agent = name + " " + c.agent } }

// CallOption is a setting of one call.
type CallOption func(http.Header)

// IdempotencyKey has a POST take effect once, however often the program asks: for 24
// hours a repetition with this key gets the answer of the first. Without it, creates
// have a new key for each call.
func IdempotencyKey(key string) CallOption { return WithHeader("Idempotency-Key", key) }

// IfMatch has a change made only if what is changed is still of this ETag.
func IfMatch(etag string) CallOption { return WithHeader("If-Match", etag) }

// WithHeader sends a header.
func WithHeader(name, value string) CallOption {
	return func(h http.Header) { h.Set(name, value) }
}

// Ptr is a pointer to v: fields that may be left out are pointers.
func Ptr[T any](v T) *T { return &v }
