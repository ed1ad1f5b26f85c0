package sessions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Failed attempts that are let through in one window. The narrow bound is for one
// e-mail address from one network address. The wide one of an e-mail address does
// not hold for networks from which its owner signed in before, so that strangers
// who guess from many of them do not lock the owner out.
const (
	attemptWindow = 15 * time.Minute
	perPair       = 10
	perEmail      = 100
	perAddress    = 100
	// knownFor is how long a network is known after a sign-in from there.
	knownFor = 30 * 24 * time.Hour
)

// subject is what attempts are counted against, and how many may fail.
type subject struct {
	hash  [sha256.Size]byte
	limit int
}

// hashOf keeps addresses out of the table.
func hashOf(parts ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(parts, "\x00")))
}

// ofAddress counts whatever is tried from a network.
func ofAddress(address string) subject {
	return subject{hashOf("address", networkOf(address)), perAddress}
}

// ofPair counts what is tried with an e-mail address from a network.
func ofPair(email, address string) subject {
	return subject{hashOf("pair", email, networkOf(address)), perPair}
}

// ofEmail counts what is tried with an e-mail address.
func ofEmail(email string) subject { return subject{hashOf("email", email), perEmail} }

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

// countSignIn counts a sign-in as failed before it is judged, so that those at
// the same moment cannot pass a bound together, and returns what it counts against.
// It fails with rate_limit_exceeded once a bound is passed. The network's comes
// first: no more than perAddress times does one make rows for others.
func countSignIn(ctx context.Context, db postgres.DB, email, address string, now time.Time) (counted []subject, err error) {
	network, pair := ofAddress(address), ofPair(email, address)
	if _, err := reserve(ctx, db, network, now); err != nil {
		return []subject{network}, err
	}
	known, err := reserve(ctx, db, pair, now)
	if apierror.Code(err) == decision.RateLimited {
		// Nothing is tried, so that one who does so again and again does not shut
		// out those who share the network.
		return []subject{pair}, errors.Join(release(ctx, db, network), err)
	}
	if err != nil || known {
		return []subject{network, pair}, err
	}
	_, err = reserve(ctx, db, ofEmail(email), now)
	return []subject{network, pair, ofEmail(email)}, err
}

// refusedFor is for how long whoever was refused is refused from memory: each attempt
// beyond a bound would change the same row once more.
const refusedFor = time.Second

// reserveSignIn is countSignIn, unless the network or the pair was
// refused a moment ago.
func (s *Service) reserveSignIn(ctx context.Context, email, address string) ([]subject, error) {
	now := s.config.Now()
	for _, of := range []subject{ofAddress(address), ofPair(email, address)} {
		if err := s.refused.Last(string(of.hash[:]), now); err != nil {
			return nil, err
		}
	}
	counted, err := countSignIn(ctx, s.config.DB, email, address, now)
	if apierror.Code(err) == decision.RateLimited && len(counted) == 1 {
		s.refused.Keep(string(counted[0].hash[:]), err, now, now.Add(refusedFor))
	}
	return counted, err
}

// reserve counts an attempt against s. known reports whether one from there
// succeeded in the time before.
func reserve(ctx context.Context, db postgres.DB, s subject, now time.Time) (known bool, err error) {
	var failures int
	var until time.Time
	err = db.QueryRow(ctx, `
		INSERT INTO sign_in_attempts AS a (subject, failures, window_until) VALUES ($1, 1, $3)
		ON CONFLICT (subject) DO UPDATE SET
			failures = CASE WHEN a.window_until <= $2 THEN 1 ELSE a.failures + 1 END,
			window_until = CASE WHEN a.window_until <= $2 THEN $3 ELSE a.window_until END
		RETURNING failures, window_until, coalesce(known_until > $2, false)`, s.hash[:], now, now.Add(attemptWindow)).Scan(&failures, &until, &known)
	if err != nil {
		return false, fmt.Errorf("count sign-in: %w", err)
	}
	if failures > s.limit {
		wait := int(until.Sub(now)/time.Second) + 1
		return known, &apierror.Error{Code: decision.RateLimited, Message: "There were too many sign-ins that failed.", RetryAfter: wait}
	}
	return known, nil
}

// release takes attempts back.
func release(ctx context.Context, db postgres.DB, list ...subject) error {
	for _, s := range list {
		_, err := db.Exec(ctx, `UPDATE sign_in_attempts SET failures = greatest(failures - 1, 0) WHERE subject = $1`, s.hash[:])
		if err != nil {
			return fmt.Errorf("clear sign-in: %w", err)
		}
	}
	return nil
}

// know starts the count of a pair anew, and knows it from now on.
func know(ctx context.Context, db postgres.DB, pair subject, now time.Time) error {
	_, err := db.Exec(ctx, `UPDATE sign_in_attempts SET failures = 0, known_until = $2 WHERE subject = $1`, pair.hash[:], now.Add(knownFor))
	if err != nil {
		return fmt.Errorf("clear sign-in: %w", err)
	}
	return nil
}

// Attempt counts something that a stranger at address tries, and that is no sign-in,
// as failed: with sign-ins, a network may fail perAddress times in a window.
// succeeded takes it back. It fails with rate_limit_exceeded beyond.
func (s *Service) Attempt(ctx context.Context, address string) (succeeded func(context.Context) error, err error) {
	network, now := ofAddress(address), s.config.Now()
	if err := s.refused.Last(string(network.hash[:]), now); err != nil {
		return nil, err
	}
	if _, err := reserve(ctx, s.config.DB, network, now); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return release(ctx, s.config.DB, network) }, nil
}

// forget drops the counts of windows that have ended, but for those of networks
// that are known.
func forget(ctx context.Context, db postgres.DB, now time.Time) error {
	_, err := db.Exec(ctx, `DELETE FROM sign_in_attempts WHERE window_until < $1 AND (known_until IS NULL OR known_until < $1)`, now)
	if err != nil {
		return fmt.Errorf("forget sign-ins: %w", err)
	}
	return nil
}
