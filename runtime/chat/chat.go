// Package chat answers chat completion requests (contract 8.1): it holds them
// within the caps, finds a provider for the model, and relays what that
// produces as a stream of server-sent events, chunk by chunk.
//
// The stream ends as contract 8.7 and public clients want it: usage on the
// finish chunk under x-service-usage, once more in an event with empty choices
// under usage, then [DONE]. A second plain usage on the finish chunk would
// make clients that add usages up count double.
package chat

import (
	"context"
	"errors"

	"sluice.dev/sluice/platform/http/identity"
)

// Request is a completion request after the caps.
type Request struct {
	Body    []byte // JSON; the provider must not change it
	Model   string
	Limit   int    // tokens that one choice may have
	Choices int    // how many choices are asked for
	ID      string // request id
	Caller
}

// Caller is who asks, as far as providers are concerned.
type Caller struct {
	// Bearer is the caller's token; empty: the request came without one.
	Bearer string
	// Signed says that an edge has authenticated the caller by Bearer, which is then a
	// credential of the platform's. Otherwise nobody has.
	Signed bool
}

// Provider makes completions. The built-in model and every upstream are one.
type Provider interface {
	// Credential says with whose key the provider would be asked: the caller's,
	// as its text, or, by "", the operator's or none. It fails when the provider
	// is not for the caller.
	Credential(c Caller) (string, error)
	// Stream starts a completion. It ends when ctx does. An error is a
	// *apierror.Error where the caller may know why, in a *Refusal where
	// no other provider would do better.
	Stream(ctx context.Context, r Request) (Stream, error)
}

// Stream is a completion on its way.
type Stream interface {
	// Next waits for the next event's data: a chunk as JSON, valid until the
	// next call. It returns io.EOF once the provider has said that it is done,
	// and io.ErrUnexpectedEOF if it stops without.
	Next() ([]byte, error)
	// Ready reports whether Next would not have to wait.
	Ready() bool
	Close() error
}

// ErrUnanswered is the error of a provider that was given a whole request and
// had not answered when the request's context ended.
var ErrUnanswered = errors.New("the provider had not answered yet")

// Refusal is an error that another provider would answer the same way: the
// request itself is at fault.
type Refusal struct{ Err error }

// Error returns the text of the cause.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Ledger meters tokens and holds accounts to their budgets.
type Ledger interface {
	// Reserve sets tokens aside before a request is admitted, so that requests
	// in parallel cannot use more than there is. It fails with BILLING_002 when
	// the account's budget does not have them.
	Reserve(ctx context.Context, c identity.Caller, tokens int) (Reservation, error)
}

// Reservation is tokens set aside for one request.
type Reservation interface {
	// Settle gives them back and records what was used instead. A second call
	// does nothing.
	Settle(ctx context.Context, model string, u Usage) error
}
