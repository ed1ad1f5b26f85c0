// Package controlplane holds the domain of Sluice: the types and rules that
// its sub-packages (stores, APIs, xDS, feeds) and the workers share. It imports
// none of them.
package apierror

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/filters/decision"
)

// Error is a failure that a caller may see. Anything else that a function
// returns counts as decision.Internal, and its text stays in the logs.
type Error struct {
	Code       decision.Code
	Message    string            // for the caller; empty: the table's message
	Details    []decision.Detail // every bad field, not only the first
	RetryAfter int               // seconds; 0: no Retry-After header
	Cause      error             // for the log
}

// Error gives the text for logs: code, message and cause.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	for _, d := range e.Details {
		s += fmt.Sprintf("; %s %s", d.Field, d.Issue)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an Error with a message for the caller.
func Errorf(c decision.Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an invalid_request error that lists details, bounded, or nil
// when there are none, so that a validator can end with it.
func Invalid(details []decision.Detail) error {
	if len(details) == 0 {
		return nil
	}
	return &Error{Code: decision.InvalidRequest, Details: decision.Bounded(details)}
}

// Code returns the code of err: empty for nil, decision.Internal for an
// error that is not, and does not wrap, an *Error.
func Code(err error) decision.Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return decision.Internal
}
