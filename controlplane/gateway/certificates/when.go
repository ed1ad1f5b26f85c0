package certificates

import (
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mholt/acmez/v3/acme"
)

const (
	// firstPause is after what time a failed attempt is repeated; the pause doubles up
	// to longestPause. Four attempts are made in the first hour: Let's Encrypt allows
	// five failed ones of a host.
	firstPause   = 5 * time.Minute
	longestPause = 6 * time.Hour
	// limitedPause is the least after an authority says that we ask too often.
	limitedPause = time.Hour
	// askEvery is how often an authority is asked when to renew (RFC 9773).
	askEvery = 6 * time.Hour
)

// due reports whether a certificate must be issued or renewed now.
func (c Certificate) due(now time.Time) bool {
	if c.NextAttemptAt != nil && now.Before(*c.NextAttemptAt) {
		return false
	}
	return c.NotAfter == nil || c.RenewAt == nil || !now.Before(*c.RenewAt)
}

// shouldAsk reports whether the authority should be asked when to renew.
func (c Certificate) shouldAsk(now time.Time) bool {
	return c.NotAfter != nil && (c.AskedWhenAt == nil || now.Sub(*c.AskedWhenAt) >= askEvery)
}

// renewal is when to renew a certificate whose authority says nothing: at two thirds of
// its life.
func renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// backOff is how long to wait after the attempt that followed n failed ones.
func backOff(n int, err error) time.Duration {
	d := longestPause
	if n < 10 {
		d = min(firstPause<<n, longestPause)
	}
	if p, ok := errors.AsType[acme.Problem](err); ok && p.Type == acme.ProblemTypeRateLimited {
		d = max(d, limitedPause)
	}
	return d + rand.N(d/10) // so that many do not come back at once
}
