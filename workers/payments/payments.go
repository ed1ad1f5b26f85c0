// Package payments verifies payments by x402, takes their nonces, and moves their
// money once, or not at all. Edges call it for requests to priced
// routes; other sellers use it as a facilitator.
//
// A payment is claimed before its request runs: its nonce is taken in Postgres,
// under a constraint that lets one claim of it through. When the product has
// answered it is settled, or released if the product failed. A job finds
// payments of which neither came true, because a process died in between.
package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

// Times of a payment.
const (
	// longestRequest is how long a claim can wait for the end of its request,
	// even when the payment is good for longer.
	longestRequest = 15 * time.Minute
	// claimGrace is how long after a payment has ended by its own terms its claim
	// is given up.
	claimGrace = 10 * time.Second
	// settleTime is how long an edge waits for money to move. What takes longer,
	// or is cut off, is left to a job.
	settleTime = 20 * time.Second
	// resolveAfter is when that job first looks: after the edge has its answer.
	resolveAfter = settleTime + 5*time.Second
)

// Jobs puts jobs into the queue inside a transaction. *river.Client has it.
type Jobs interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Config says what a Service works with.
type Config struct {
	DB      postgres.DB
	Jobs    Jobs
	Settler payment.Settler
	// Terms are those of the configuration in force: what network and token
	// payments are made in. They are believed for a second.
	Terms func(context.Context) (x402.Terms, error)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Service keeps payments. It is safe for use by many goroutines, and any number of
// services may work on one database.
type Service struct {
	config Config
	ledger payment.Ledger // nil: the Settler is not one

	mu    sync.Mutex
	terms x402.Terms // as they were at
	at    time.Time
}

// New returns a Service.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Service{config: c}
	s.ledger, _ = c.Settler.(payment.Ledger)
	return s
}

// Order is a payment with what it is for.
type Order struct {
	Requirement x402.Requirement
	Payment     x402.Payment
	Route       string // empty: another seller's
	Account     string // of that seller
	RequestID   string
}

// validate makes a payment of an order if nothing is wrong with it by itself, and
// it is in our money. It fails with a *payment.Refusal.
func (s *Service) validate(ctx context.Context, o Order) (payment.Payment, error) {
	r := o.Requirement
	t, err := s.currentTerms(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	if err := checkTerms(r, t); err != nil {
		return payment.Payment{}, err
	}
	if reason := x402.Decide(r, o.Payment, s.config.Now().Unix()); reason != x402.Accepted {
		return payment.Payment{}, payment.Refuse(reason)
	}
	token, err := evm.ParseAddress(r.Asset)
	if err != nil || r.Amount == 0 || r.Amount > maxAmount {
		return payment.Payment{}, payment.Refuse(x402.BadRequirements)
	}
	p := payment.Payment{
		Network: r.Network, Payment: o.Payment, Requirement: r, Route: o.Route, Account: o.Account, RequestID: o.RequestID,
		Domain: evm.Domain{Name: r.Name, Version: r.Version, Chain: x402.Chain(r.Network), Token: token},
	}
	if !p.Signed() {
		return p, payment.Refuse(x402.BadSignature)
	}
	return p, nil
}

// maxAmount is what Postgres' bigint holds.
const maxAmount = 1<<63 - 1

// Verify checks an order and changes nothing. It fails with a *payment.Refusal
// when the order would not be paid now.
func (s *Service) Verify(ctx context.Context, o Order) error {
	p, err := s.validate(ctx, o)
	if err == nil {
		err = s.checkNonce(ctx, p)
	}
	if err == nil {
		err = s.config.Settler.Check(ctx, p)
	}
	return err
}

// Claim checks an order and takes the nonce of its payment. Whoever gets an id
// may let one request run. It fails with a *payment.Refusal otherwise; a nonce
// that was taken once is never free again.
func (s *Service) Claim(ctx context.Context, o Order) (id string, err error) {
	p, err := s.validate(ctx, o)
	if err != nil {
		return "", err
	}
	if s.ledger == nil { // what it would have to ask of others comes before the transaction
		if err := s.checkNonce(ctx, p); err != nil {
			return "", err
		}
		if err := s.config.Settler.Check(ctx, p); err != nil {
			return "", err
		}
	}
	p.ID, p.State, p.CreatedAt = newID(), payment.Granted, s.config.Now()
	return p.ID, postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		if err := insert(ctx, tx, p); err != nil {
			return err
		}
		if s.ledger != nil {
			if err := s.ledger.Hold(ctx, tx, p); err != nil {
				return err
			}
		}
		return s.enqueueResolve(ctx, tx, p.ID, deadline(p))
	})
}

// deadline is when a claim of which nothing was heard is given up.
func deadline(p payment.Payment) time.Time {
	latest := p.CreatedAt.Add(longestRequest)
	if end := p.ValidBefore.Uint64(); end < uint64(latest.Unix()) {
		latest = time.Unix(int64(end), 0)
	}
	return latest.Add(claimGrace)
}

// enqueueResolve asks for a job that looks at a payment.
func (s *Service) enqueueResolve(ctx context.Context, tx pgx.Tx, id string, at time.Time) error {
	_, err := s.config.Jobs.InsertTx(ctx, tx, payment.ResolveArgs{Payment: id}, &river.InsertOpts{Queue: payment.Queue, ScheduledAt: at})
	if err != nil {
		return fmt.Errorf("queue the payment's job: %w", err)
	}
	return nil
}

// Release ends a claim whose request was not served: nothing is charged. A
// payment that has come further is left as it is.
func (s *Service) Release(ctx context.Context, id string) error {
	return s.endUnpaid(ctx, id, payment.Released, "")
}

// endUnpaid ends a payment that is Granted without moving money.
func (s *Service) endUnpaid(ctx context.Context, id string, to payment.State, reason x402.Reason) error {
	return postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		p, err := transition(ctx, tx, id, payment.Granted, to, reason, "")
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && s.ledger != nil {
			err = s.ledger.Release(ctx, tx, p)
		}
		return err
	})
}

// Settle moves the money of a claim whose request was served, and returns the
// payment as it then is: Settled, or Failed or another end, with the reason,
// when no money moves, or Settling when nobody knows yet. Asked again, it
// answers the same. It fails with not_found for an id that nobody has.
func (s *Service) Settle(ctx context.Context, id string) (payment.Payment, error) {
	p, err := s.startSettling(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return find(ctx, s.config.DB, id) // another call was first
	}
	if err != nil || p.State != payment.Settling {
		return p, err
	}
	return s.callSettler(context.WithoutCancel(ctx), p, false) // the edge's timeout must not end it half way
}

// startSettling takes a claim to Settling; with a Ledger, or when the payment's time
// has passed, straight to its end.
func (s *Service) startSettling(ctx context.Context, id string) (p payment.Payment, err error) {
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		if p, err = transition(ctx, tx, id, payment.Granted, payment.Settling, "", ""); err != nil {
			return err
		}
		if p.ValidBefore.Uint64() <= uint64(s.config.Now().Unix()) {
			return s.expire(ctx, tx, &p)
		}
		if s.ledger == nil {
			return s.enqueueResolve(ctx, tx, id, s.config.Now().Add(resolveAfter))
		}
		transaction, err := s.ledger.Capture(ctx, tx, p)
		if err == nil {
			p, err = transition(ctx, tx, id, payment.Settling, payment.Settled, "", transaction)
		}
		return err
	})
	return p, err
}

// expire ends a payment whose time has passed.
func (s *Service) expire(ctx context.Context, tx pgx.Tx, p *payment.Payment) (err error) {
	if s.ledger != nil {
		if err := s.ledger.Release(ctx, tx, *p); err != nil {
			return err
		}
	}
	*p, err = transition(ctx, tx, p.ID, payment.Settling, payment.Failed, x402.TooLate, "")
	return err
}

// callSettler has the money of a payment that is Settling moved, and stores the
// outcome.
func (s *Service) callSettler(ctx context.Context, p payment.Payment, again bool) (payment.Payment, error) {
	limited, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	transaction, err := s.config.Settler.Settle(limited, p, again)
	refusal, refused := errors.AsType[*payment.Refusal](err)
	to, reason := payment.Settled, x402.Accepted
	switch {
	case refused:
		to, reason = payment.Failed, refusal.Reason
	case err != nil:
		s.config.Log.WarnContext(ctx, "settlement is not known yet", "payment", p.ID, "cause", err)
		return p, nil
	}
	done, err := transition(ctx, s.config.DB, p.ID, payment.Settling, to, reason, transaction)
	if errors.Is(err, pgx.ErrNoRows) {
		return find(ctx, s.config.DB, p.ID) // a job was first
	}
	return done, err
}

// maxAttempts is how often settlement is tried before it is left to people.
const maxAttempts = 50

// Resolve finds out what became of a payment that should have ended. It
// reports how long to wait before it is asked again; 0: the payment has ended.
func (s *Service) Resolve(ctx context.Context, id string) (wait time.Duration, err error) {
	p, err := find(ctx, s.config.DB, id)
	if apierror.Code(err) == decision.NotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	switch p.State {
	case payment.Granted:
		if left := deadline(p).Sub(s.config.Now()); left > 0 {
			return left, nil
		}
		return 0, s.endUnpaid(ctx, id, payment.Abandoned, "")
	case payment.Settling:
		return s.retry(ctx, p)
	}
	return 0, nil
}

// retry tries again to settle a payment of which nobody knows.
func (s *Service) retry(ctx context.Context, p payment.Payment) (time.Duration, error) {
	attempts, err := countAttempt(ctx, s.config.DB, p.ID)
	if err != nil {
		return 0, err
	}
	p, err = s.callSettler(ctx, p, true)
	if err != nil || p.State != payment.Settling {
		return 0, err
	}
	if attempts < maxAttempts {
		return min(time.Minute, time.Duration(attempts)*2*time.Second), nil
	}
	s.config.Log.ErrorContext(ctx, "a payment cannot be resolved", "payment", p.ID)
	_, err = transition(ctx, s.config.DB, p.ID, payment.Settling, payment.Unresolved, x402.SettleFailed, "")
	return 0, err
}
