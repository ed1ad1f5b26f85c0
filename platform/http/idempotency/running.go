package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
)

const (
	// maxCall bounds one call to somebody else.
	maxCall = time.Minute
	// ClaimLife is for how long a claim that a crash left keeps repetitions away. It
	// is more than a call and what follows it take.
	ClaimLife = 90 * time.Second
	// maxWait bounds how long a request waits for a place.
	maxWait = 10 * time.Second
	// maxCalls is how many requests of one account may wait for others at once, and
	// callPlaces of all, each with its body.
	maxCalls, callPlaces = 16, 1024
	// refusedFor is for how long whoever has that many is refused from memory.
	refusedFor = time.Second
	// dropTimeout bounds the taking away of a claim whose request is over.
	dropTimeout = 5 * time.Second
)

var (
	errRunning error = &apierror.Error{Code: decision.Conflict, RetryAfter: 1, Message: "A request with this Idempotency-Key is still running."}
	errCalls   error = &apierror.Error{Code: decision.RateLimited, RetryAfter: 5, Message: "Too many requests of the account wait for other servers already."}
	errWithin        = errors.New("a call to others within a database transaction")
)

// running is a request under way: in a transaction and at one of the account's
// places, or with neither while it calls others. One goroutine uses it at a time.
type running struct {
	m *Middleware
	request
	tx         pgx.Tx // nil: apart
	leave      func() // gives the place back
	hangUp     func() // gives the place of its calls back; nil: it has made none
	savepoints int    // transactions of the handler that have not ended
	token      []byte // of the claim; nil: none was made
	err        error  // why it cannot go on
	most       int    // bytes of an answer that is kept; less than maxAnswer: maxAnswer
}

// start waits for a place and begins the transaction. stop must be called.
func (q *running) start(ctx context.Context) error {
	leave, err := q.m.enter(ctx, q.account)
	if err != nil {
		return err
	}
	q.leave = leave
	tx, err := q.m.DB.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	q.tx = tx
	return nil
}

// stop gives back what is held: nothing is left of a transaction that was not
// committed, nor of the claim of a request that ended without an answer to keep.
func (q *running) stop(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if q.tx != nil {
		_ = q.tx.Rollback(ctx) // nothing after a commit
		q.tx = nil
	}
	if q.token != nil {
		q.drop(ctx)
	}
	if q.leave != nil {
		q.leave()
		q.leave = nil
	}
	if q.hangUp != nil {
		q.hangUp()
		q.hangUp = nil
	}
}

// drop takes the claim away, so that a repetition may run at once. One that stays
// all the same lapses.
func (q *running) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	if _, err := q.m.DB.Exec(ctx, `DELETE FROM idempotent_claims WHERE scope = $1 AND token = $2`, q.scope, q.token); err != nil {
		slog.WarnContext(ctx, "the claim of a request stays until it lapses", "cause", err)
	}
}

// enter waits for one of the account's places, for a bounded time.
func (m *Middleware) enter(ctx context.Context, account string) (func(), error) {
	if leave, ok := m.places.TryEnter(account); ok {
		return leave, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	leave, err := m.places.Enter(ctx, account)
	if errors.Is(err, fairshare.ErrBusy) {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: 1, Message: "The account has too many requests with an Idempotency-Key under way."}
	}
	if err != nil {
		return nil, &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
	}
	return leave, nil
}

// Apart implements postgres.Holder.
func (q *running) Apart(ctx context.Context, call func(context.Context)) error {
	if q.err != nil {
		return q.err
	}
	if q.hangUp == nil { // kept to the end: a second call is not refused after the first has had its effect
		leave, ok := q.m.calls.TryEnter(q.account)
		if !ok {
			q.err = errCalls
			q.m.refused.Keep(q.route, errCalls, q.m.Now(), q.m.Now().Add(refusedFor))
			return q.err
		}
		q.hangUp = leave
	}
	if q.err = q.pause(ctx); q.err != nil {
		return q.err
	}
	bounded, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	call(bounded)
	q.err = q.resume(ctx)
	return q.err
}

// pause commits what was done so far with a claim, and gives place and
// connection back.
func (q *running) pause(ctx context.Context) error {
	if q.savepoints > 0 {
		return errWithin
	}
	if q.token == nil {
		q.token = []byte(rand.Text())
	}
	_, err := q.tx.Exec(ctx, `INSERT INTO idempotent_claims (scope, request, token, until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (scope) DO UPDATE SET request = excluded.request, token = excluded.token, until = excluded.until`,
		q.scope, q.content, q.token, q.m.Now().Add(ClaimLife))
	if err == nil {
		err = q.tx.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	q.leave()
	q.leave = nil
	return nil
}

// resume goes on in a new transaction, unless the claim has lapsed and a
// repetition has taken over.
func (q *running) resume(ctx context.Context) error {
	if err := q.start(ctx); err != nil {
		return err
	}
	if _, err := q.tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, q.lock()); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var token []byte
	err := q.tx.QueryRow(ctx, `SELECT token FROM idempotent_claims WHERE scope = $1`, q.scope).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !bytes.Equal(token, q.token) {
		return errRunning
	}
	if err != nil {
		return fmt.Errorf("look for the claim: %w", err)
	}
	return nil
}

// lock is the number of the lock that keeps repetitions apart.
func (q request) lock() int64 { return int64(binary.BigEndian.Uint64(q.scope)) }

// claim makes sure that no other request with the same key runs, until the
// transaction ends or the request calls out. A claim that has lapsed is taken over.
func (q *running) claim(ctx context.Context) error {
	var mine bool
	if err := q.tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, q.lock()).Scan(&mine); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if !mine {
		return errRunning
	}
	var content []byte
	var until time.Time
	err := q.tx.QueryRow(ctx, `SELECT request, until FROM idempotent_claims WHERE scope = $1`, q.scope).Scan(&content, &until)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for a claim: %w", err)
	case until.After(q.m.Now()) && !bytes.Equal(content, q.content):
		return errMismatch
	case until.After(q.m.Now()):
		return errRunning
	}
	return q.unclaim(ctx)
}

// unclaim takes the claim of the request's key away, in its transaction.
func (q *running) unclaim(ctx context.Context) error {
	if _, err := q.tx.Exec(ctx, `DELETE FROM idempotent_claims WHERE scope = $1`, q.scope); err != nil {
		return fmt.Errorf("take a claim over: %w", err)
	}
	return nil
}
