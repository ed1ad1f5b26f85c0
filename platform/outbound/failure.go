package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
)

// Reason is the kind of a failed call, fit for logs, metric labels and
// customers.
type Reason string

// The reasons why a call got no answer.
const (
	ReasonURL        Reason = "invalid_url"
	ReasonAddress    Reason = "address_refused"
	ReasonDNS        Reason = "dns_failure"
	ReasonTimeout    Reason = "timeout"
	ReasonTLS        Reason = "tls_failure"
	ReasonConnection Reason = "connection_failure"
)

// messages say each reason in words. They name no address: a customer must not
// learn our network from them.
var messages = map[Reason]string{
	ReasonURL:        "the URL is not valid",
	ReasonAddress:    "the host leads to an address that is not allowed",
	ReasonDNS:        "the host name could not be resolved",
	ReasonTimeout:    "no complete answer in time",
	ReasonTLS:        "the TLS handshake failed",
	ReasonConnection: "the connection failed",
}

// errAddress is what the dialer reports for an address outside a client's
// reach.
var errAddress = errors.New("address refused")

// Failure is a call that got no complete answer.
type Failure struct {
	Reason Reason
	Cause  error // for our log only: it may name addresses
}

// Error returns the reason in words that may be shown to a customer.
func (f *Failure) Error() string { return messages[f.Reason] }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// failure finds out why a call failed.
func failure(err error) *Failure {
	reason := ReasonConnection
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, errAddress):
		reason = ReasonAddress
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		reason = ReasonTimeout
	case errors.As(err, &dns):
		reason = ReasonDNS
	case isTLS(err):
		reason = ReasonTLS
	}
	return &Failure{Reason: reason, Cause: err}
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &authority) || errors.As(err, &host)
}
