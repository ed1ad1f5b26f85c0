// Package certificates keeps the certificates that edges show by the name that a
// client asks for: those that an authority issues by ACME (RFC 8555) for entries of
// the configuration, and those that operators upload. Keys are sealed in Postgres,
// bound to their rows, and handed to edges by SDS.
//
// A certificate and its key are written by one statement, checked before to fit each
// other and the hosts, and edges are given what is in such a row and nothing else. So
// a process that is killed at any line leaves the certificate of before in force. What
// it may leave behind is an order at the authority, which nobody finishes, and a
// challenge, which expires.
package certificates

import (
	"time"

	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Channel is the Postgres channel on which changes are announced.
const Channel = "sluice_certificates"

// MaxUploaded bounds how many certificates operators upload: every edge holds all.
const MaxUploaded = 2000

// Where a certificate comes from.
const (
	SourceACME     = "acme"
	SourceUploaded = "uploaded"
)

// The states of a certificate.
const (
	StatePending = "pending" // none was issued yet
	StateValid   = "valid"
	StateFailing = "failing" // the last attempt to get it, or to renew it, failed
	StateExpired = "expired"
)

// Certificate is what is shown of one: never its key.
type Certificate struct {
	Name          string     `json:"name" db:"name"`
	Source        string     `json:"source" db:"source"`
	State         string     `json:"state" db:"-"`
	Hosts         []string   `json:"hosts" db:"hosts"`
	Issuer        *string    `json:"issuer" db:"issuer"` // nil: none was issued yet, as below
	Fingerprint   *string    `json:"fingerprint" db:"fingerprint"`
	NotBefore     *time.Time `json:"not_before" db:"not_before"`
	NotAfter      *time.Time `json:"not_after" db:"not_after"`
	RenewAt       *time.Time `json:"renew_at" db:"renew_at"`
	Attempts      int        `json:"attempts" db:"attempts"` // since the last that succeeded
	NextAttemptAt *time.Time `json:"next_attempt_at" db:"next_attempt_at"`
	LastError     *string    `json:"last_error" db:"last_error"`
	Chain         *string    `json:"certificate,omitempty" db:"chain"` // PEM; only of one that is shown by itself

	AskedWhenAt *time.Time `json:"-" db:"asked_when_at"`
}

// stateAt sets the state.
func (c *Certificate) stateAt(now time.Time) {
	switch {
	case c.NotAfter != nil && now.After(*c.NotAfter):
		c.State = StateExpired
	case c.LastError != nil:
		c.State = StateFailing
	case c.NotAfter == nil:
		c.State = StatePending
	default:
		c.State = StateValid
	}
	if c.LastError == nil {
		c.NextAttemptAt = nil
	}
}

// Store keeps certificates.
type Store struct {
	DB  postgres.DB
	Box *secretbox.Box
	Now func() time.Time // nil: time.Now
}

func (s Store) now() time.Time { return clock.Or(s.Now) }

// rowOf and accountRow are what keys are bound to.
func rowOf(name string) string       { return "certificate " + name }
func accountRow(id string) string    { return "ACME account " + id }
func accountID(dir, m string) string { return dir + " " + m }

// Sealed are the columns that secretbox has sealed.
func Sealed() []reencrypt.Column {
	return []reencrypt.Column{
		{Table: "certificates", ID: "name", Value: "private_key", Row: rowOf},
		{Table: "acme_accounts", ID: "id", Value: "private_key", Row: accountRow},
	}
}
