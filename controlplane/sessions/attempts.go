package sessions

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
)

// Failed sign-ins that are let through in one window. The narrow bound is for
// one e-mail address from one network address, so that a stranger who guesses
// does not lock the owner out.
const (
	attemptWindow = 15 * time.Minute
	perPair       = 10
	perEmail      = 100
	perAddress    = 100
)

// subject is what attempts are counted against, and how many may fail.
type subject struct {
	hash  [sha256.Size]byte
	limit int
}

// subjects returns what an attempt counts against.
func subjects(email, address string) []subject {
	network := networkOf(address)
	hash := func(parts ...string) [sha256.Size]byte { return sha256.Sum256([]byte(strings.Join(parts, "\x00"))) }
	return []subject{
		{hash("pair", email, network), perPair},
		{hash("email", email), perEmail},
		{hash("address", network), perAddress},
	}
}

// networkOf is the address itself, or the /64 of an IPv6 address: one customer
// commonly has that many.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}

// reserve counts an attempt as failed before it is judged, so that attempts at
// the same moment cannot pass the bound together. It fails with
// rate_limit_exceeded once a bound is passed.
func reserve(ctx context.Context, db postgres.DB, list []subject, now time.Time) error {
	for _, s := range list {
		var failures int
		var until time.Time
		err := db.QueryRow(ctx, `
			INSERT INTO sign_in_attempts AS a (subject, failures, window_until) VALUES ($1, 1, $3)
			ON CONFLICT (subject) DO UPDATE SET
				failures = CASE WHEN a.window_until <= $2 THEN 1 ELSE a.failures + 1 END,
				window_until = CASE WHEN a.window_until <= $2 THEN $3 ELSE a.window_until END
			RETURNING failures, window_until`, s.hash[:], now, now.Add(attemptWindow)).Scan(&failures, &until)
		if err != nil {
			return fmt.Errorf("count sign-in: %w", postgres.Unreachable(err))
		}
		if failures > s.limit {
			wait := int(until.Sub(now)/time.Second) + 1
			return &controlplane.Error{Code: decision.RateLimited, Message: "There were too many sign-ins that failed.", RetryAfter: wait}
		}
	}
	return nil
}

// release takes an attempt that succeeded back; the pair's count starts anew.
func release(ctx context.Context, db postgres.DB, list []subject) error {
	for i, s := range list {
		_, err := db.Exec(ctx, `UPDATE sign_in_attempts SET failures = CASE WHEN $2 THEN 0 ELSE greatest(failures - 1, 0) END
			WHERE subject = $1`, s.hash[:], i == 0)
		if err != nil {
			return fmt.Errorf("clear sign-in: %w", postgres.Unreachable(err))
		}
	}
	return nil
}

// forget drops the counts of windows that have ended.
func forget(ctx context.Context, db postgres.DB, now time.Time) error {
	if _, err := db.Exec(ctx, `DELETE FROM sign_in_attempts WHERE window_until < $1`, now); err != nil {
		return fmt.Errorf("forget sign-ins: %w", postgres.Unreachable(err))
	}
	return nil
}
