// Package payments judges payments by x402, takes their nonces, and sees to it that
// their money moves once, or not at all. Edges call it for requests to priced
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

// Config says what a Hub works with.
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

// Hub keeps payments. It is safe for use by many goroutines, and any number of
// hubs may work on one database.
type Hub struct {
	config Config
	book   payment.Book // nil: the Settler is not one

	mu    sync.Mutex
	terms x402.Terms // as they were at
	at    time.Time
}

// New returns a Hub.
func New(c Config) *Hub {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	h := &Hub{config: c}
	h.book, _ = c.Settler.(payment.Book)
	return h
}

// Order is a payment with what it is for.
type Order struct {
	Requirement x402.Requirement
	Payment     x402.Payment
	Route       string // empty: another seller's
	Account     string // of that seller
	RequestID   string
}

// judge makes a payment of an order if nothing is wrong with it by itself, and
// it is in our money. It fails with a *payment.Refusal.
func (h *Hub) judge(ctx context.Context, o Order) (payment.Payment, error) {
	r := o.Requirement
	t, err := h.configured(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	if err := ours(r, t); err != nil {
		return payment.Payment{}, err
	}
	if reason := x402.Decide(r, o.Payment, h.config.Now().Unix()); reason != x402.Accepted {
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

// Verify judges an order and changes nothing. It fails with a *payment.Refusal
// when the order would not be paid now.
func (h *Hub) Verify(ctx context.Context, o Order) error {
	p, err := h.judge(ctx, o)
	if err == nil {
		err = h.unused(ctx, p)
	}
	if err == nil {
		err = h.config.Settler.Check(ctx, p)
	}
	return err
}

// Claim judges an order and takes the nonce of its payment. Whoever gets an id
// may let one request run. It fails with a *payment.Refusal otherwise; a nonce
// that was taken once is never free again.
func (h *Hub) Claim(ctx context.Context, o Order) (id string, err error) {
	p, err := h.judge(ctx, o)
	if err != nil {
		return "", err
	}
	if h.book == nil { // what it would have to ask of others comes before the transaction
		if err := h.unused(ctx, p); err != nil {
			return "", err
		}
		if err := h.config.Settler.Check(ctx, p); err != nil {
			return "", err
		}
	}
	p.ID, p.State, p.CreatedAt = newID(), payment.Granted, h.config.Now()
	return p.ID, postgres.InTx(ctx, h.config.DB, func(tx pgx.Tx) error {
		if err := insert(ctx, tx, p); err != nil {
			return err
		}
		if h.book != nil {
			if err := h.book.Hold(ctx, tx, p); err != nil {
				return err
			}
		}
		return h.later(ctx, tx, p.ID, deadline(p))
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

// later asks for a job that looks at a payment.
func (h *Hub) later(ctx context.Context, tx pgx.Tx, id string, at time.Time) error {
	_, err := h.config.Jobs.InsertTx(ctx, tx, payment.ResolveArgs{Payment: id}, &river.InsertOpts{Queue: payment.Queue, ScheduledAt: at})
	if err != nil {
		return fmt.Errorf("queue the payment's job: %w", err)
	}
	return nil
}

// Release ends a claim whose request was not served: nothing is charged. A
// payment that has come further is left as it is.
func (h *Hub) Release(ctx context.Context, id string) error {
	return h.giveUp(ctx, id, payment.Released, "")
}

// giveUp ends a payment that is Granted without moving money.
func (h *Hub) giveUp(ctx context.Context, id string, to payment.State, reason x402.Reason) error {
	return postgres.InTx(ctx, h.config.DB, func(tx pgx.Tx) error {
		p, err := move(ctx, tx, id, payment.Granted, to, reason, "")
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && h.book != nil {
			err = h.book.Free(ctx, tx, p)
		}
		return err
	})
}

// Settle moves the money of a claim whose request was served, and returns the
// payment as it then is: Settled, or Failed or another end, with the reason,
// when no money moves, or Settling when nobody knows yet. Asked again, it
// answers the same. It fails with not_found for an id that nobody has.
func (h *Hub) Settle(ctx context.Context, id string) (payment.Payment, error) {
	p, err := h.begin(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return find(ctx, h.config.DB, id) // another call was first
	}
	if err != nil || p.State != payment.Settling {
		return p, err
	}
	return h.pay(context.WithoutCancel(ctx), p, false) // the edge's patience must not end it half way
}

// begin takes a claim to Settling. A Book settles it there and then, and so
// does the end of the payment's time.
func (h *Hub) begin(ctx context.Context, id string) (p payment.Payment, err error) {
	err = postgres.InTx(ctx, h.config.DB, func(tx pgx.Tx) error {
		if p, err = move(ctx, tx, id, payment.Granted, payment.Settling, "", ""); err != nil {
			return err
		}
		if p.ValidBefore.Uint64() <= uint64(h.config.Now().Unix()) {
			return h.expire(ctx, tx, &p)
		}
		if h.book == nil {
			return h.later(ctx, tx, id, h.config.Now().Add(resolveAfter))
		}
		transaction, err := h.book.Move(ctx, tx, p)
		if err == nil {
			p, err = move(ctx, tx, id, payment.Settling, payment.Settled, "", transaction)
		}
		return err
	})
	return p, err
}

// expire ends a payment whose time has passed.
func (h *Hub) expire(ctx context.Context, tx pgx.Tx, p *payment.Payment) (err error) {
	if h.book != nil {
		if err := h.book.Free(ctx, tx, *p); err != nil {
			return err
		}
	}
	*p, err = move(ctx, tx, p.ID, payment.Settling, payment.Failed, x402.TooLate, "")
	return err
}

// pay has the money of a payment that is Settling moved, and notes what came
// of it.
func (h *Hub) pay(ctx context.Context, p payment.Payment, again bool) (payment.Payment, error) {
	limited, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	transaction, err := h.config.Settler.Settle(limited, p, again)
	refusal, refused := errors.AsType[*payment.Refusal](err)
	to, reason := payment.Settled, x402.Accepted
	switch {
	case refused:
		to, reason = payment.Failed, refusal.Reason
	case err != nil:
		h.config.Log.WarnContext(ctx, "settlement is not known yet", "payment", p.ID, "cause", err)
		return p, nil
	}
	done, err := move(ctx, h.config.DB, p.ID, payment.Settling, to, reason, transaction)
	if errors.Is(err, pgx.ErrNoRows) {
		return find(ctx, h.config.DB, p.ID) // a job was first
	}
	return done, err
}

// maxAttempts is how often settlement is tried before it is left to people.
const maxAttempts = 50

// Resolve finds out what became of a payment that should have ended. It
// reports how long to wait before it is asked again; 0: the payment has ended.
func (h *Hub) Resolve(ctx context.Context, id string) (wait time.Duration, err error) {
	p, err := find(ctx, h.config.DB, id)
	if apierror.Code(err) == decision.NotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	switch p.State {
	case payment.Granted:
		if left := deadline(p).Sub(h.config.Now()); left > 0 {
			return left, nil
		}
		return 0, h.giveUp(ctx, id, payment.Abandoned, "")
	case payment.Settling:
		return h.retry(ctx, p)
	}
	return 0, nil
}

// retry tries again to settle a payment of which nobody knows.
func (h *Hub) retry(ctx context.Context, p payment.Payment) (time.Duration, error) {
	attempts, err := countAttempt(ctx, h.config.DB, p.ID)
	if err != nil {
		return 0, err
	}
	p, err = h.pay(ctx, p, true)
	if err != nil || p.State != payment.Settling {
		return 0, err
	}
	if attempts < maxAttempts {
		return min(time.Minute, time.Duration(attempts)*2*time.Second), nil
	}
	h.config.Log.ErrorContext(ctx, "a payment cannot be resolved", "payment", p.ID)
	_, err = move(ctx, h.config.DB, p.ID, payment.Settling, payment.Unresolved, x402.SettleFailed, "")
	return 0, err
}
