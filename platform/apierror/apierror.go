// Package apierror is what callers are told of failures: a code of the table of
// errors, with its message, details and time to wait. It is also the one place where
// errors of the database get a code.
package apierror

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/filters/decision"
)

// Error is a failure that a caller may see. Anything else that a function
// returns counts as decision.Internal, and its text stays in the logs.
type Error struct {
	Code       decision.Code
	Message    string            // for the caller; empty: the table's message
	Details    []decision.Detail // every bad field, not only the first
	RetryAfter int               // seconds; 0: no Retry-After header
	Body       []byte            // of the request, where Details are what could not be read of it
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

// Code returns the code that From gives err: empty for nil.
func Code(err error) decision.Code {
	if err == nil {
		return ""
	}
	return From(err).Code
}

// From returns what a caller is told of err, which is not nil: the Error that err is
// or wraps; service_unavailable for a database that cannot be reached; invalid_request
// for a text that it cannot hold; decision.Internal for anything else.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case unreachable(err):
		return &Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
	case unstorable(err):
		return &Error{Code: decision.InvalidRequest, Message: "The request holds a character that no text may hold, such as U+0000.", Cause: err}
	}
	return &Error{Code: decision.Internal, Cause: err}
}

// unreachable reports whether err is of the connection to the database, not of what
// was asked: classes 08, 53 and 57 of SQLSTATE, the network, or a server that takes no
// writes, since another has become the primary (25006).
func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code[:2] == "57" || pg.Code[:2] == "08" || pg.Code[:2] == "53" || pg.Code == "25006") ||
		errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// unstorable reports whether the database has refused a text of the caller's for a
// character in it: one that is no UTF-8, or U+0000, which JSON has and texts have not.
func unstorable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "22021" || e.Code == "22P05")
}
