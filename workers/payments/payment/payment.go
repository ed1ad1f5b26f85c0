// Package payment defines a payment and its states, from the moment its nonce is
// taken to its end. The payments service keeps payments; settlers move their money.
package payment

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/workers/payments/evm"
)

// State is how far a payment has come.
type State string

// The states. Granted and Settling are under way, Unresolved waits for an
// operator, the others are ends.
const (
	Granted    State = "granted"    // its nonce is taken, its request may run
	Settling   State = "settling"   // money is being moved, or may have been
	Settled    State = "settled"    // money has moved
	Failed     State = "failed"     // money has not moved: settlement was refused
	Released   State = "released"   // money has not moved: the product failed
	Abandoned  State = "abandoned"  // money has not moved: nobody said how the request ended
	Unresolved State = "unresolved" // nobody can say any more whether money has moved
)

// Payment is one authorization and what became of it.
type Payment struct {
	ID      string // xpay_…
	Network string // name of protocol version 1
	Domain  evm.Domain
	// What the client sent, in its canonical form.
	x402.Payment
	Requirement x402.Requirement
	Route       string // empty: for another seller, who uses ours as a facilitator
	Account     string // of that seller; empty: nobody known
	RequestID   string
	State       State
	Reason      x402.Reason // why money has not moved
	Transaction string      // on the chain or in the ledger; empty: none known
	CreatedAt   time.Time
	EndedAt     *time.Time
}

// maxDigits is the length of the longest number of 256 bits.
const maxDigits = 78

// Transfer is what the payer has signed. Its cost is constant: longer texts than
// the protocol has are refused unread.
func (p *Payment) Transfer() (t evm.Transfer, err error) {
	if t.From, err = evm.ParseAddress(p.From); err != nil {
		return t, err
	}
	if t.To, err = evm.ParseAddress(p.To); err != nil {
		return t, err
	}
	nonce, err := evm.Bytes(p.Nonce, 32)
	if err != nil {
		return t, err
	}
	t.Nonce = [32]byte(nonce)
	for n, text := range map[**big.Int]x402.Number{&t.Value: p.Value, &t.ValidAfter: p.ValidAfter, &t.ValidBefore: p.ValidBefore} {
		if len(text) > maxDigits {
			return t, fmt.Errorf("a number has %d digits, more than 256 bits", len(text))
		}
		v, ok := new(big.Int).SetString(string(text), 10)
		if !ok || v.Sign() < 0 || v.BitLen() > 256 {
			return t, fmt.Errorf("%q is not a number of 256 bits", text)
		}
		*n = v
	}
	return t, nil
}

// Signed reports whether the payer has signed the payment, for the token of its
// domain.
func (p *Payment) Signed() bool {
	t, err := p.Transfer()
	if err != nil {
		return false
	}
	sig, err := evm.Bytes(p.Signature, len(evm.Signature{}))
	if err != nil {
		return false
	}
	signer, ok := evm.Signature(sig).Signer(t.Digest(p.Domain))
	return ok && signer == t.From
}

// Refusal is the error of a payment whose money has not moved, and will not.
type Refusal struct {
	Reason x402.Reason
	Cause  error // for the log; may be nil
}

// Refuse returns a Refusal.
func Refuse(reason x402.Reason) error { return &Refusal{Reason: reason} }

// Error gives the reason.
func (r *Refusal) Error() string {
	if r.Cause != nil {
		return string(r.Reason) + ": " + r.Cause.Error()
	}
	return string(r.Reason)
}

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// Settler moves money.
type Settler interface {
	// Check fails with a *Refusal when the payer could not pay now. It is called
	// before the nonce is taken.
	Check(ctx context.Context, p Payment) error
	// Settle moves the money of p, which is Settling, and returns the transaction.
	// It is called again after a crash or an error, with again true, and must not
	// move money twice. A *Refusal says that money has not moved and will not;
	// after any other error nobody knows.
	Settle(ctx context.Context, p Payment, again bool) (transaction string, err error)
	// Open reports whether anybody may have others' payments settled, or only
	// callers with an account, because it costs.
	Open() bool
}

// Ledger is a Settler that keeps its accounts in our own database, and so does
// its part in the payments service's transactions.
type Ledger interface {
	Settler
	// Hold sets the amount aside. It fails with a *Refusal when there is too little.
	Hold(ctx context.Context, tx pgx.Tx, p Payment) error
	// Release gives back what Hold set aside.
	Release(ctx context.Context, tx pgx.Tx, p Payment) error
	// Capture pays out what Hold set aside and returns the transaction.
	Capture(ctx context.Context, tx pgx.Tx, p Payment) (transaction string, err error)
}

// Queue is the queue of jobs about payments.
const Queue = "payments"

// ResolveArgs asks what became of a payment that has not ended.
type ResolveArgs struct {
	Payment string `json:"payment"`
}

// Kind names the job in the queue.
func (ResolveArgs) Kind() string { return "x402_resolve" }
