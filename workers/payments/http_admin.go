package payments

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/ledger"
	"sluice.dev/sluice/workers/payments/payment"
)

// Admin serves operators.
type Admin struct {
	DB       postgres.DB
	Document func(context.Context) (config.Document, error) // the configuration in force
}

// Routes mounts, relative to the admin API:
//
//	GET payments                           what was paid, newest first, and revenue by route
//	GET x402/accounts/{address}            what an address has in the test ledger
//	POST x402/accounts/{address}/fund      {amount}: gives it more
func (a Admin) Routes(r chi.Router, respond httpapi.Adapter) {
	r.Get("/payments", httpapi.Handle(respond, http.StatusOK, a.list))
	r.Get("/x402/accounts/{address}", httpapi.Handle(respond, http.StatusOK, a.balance))
	r.Post("/x402/accounts/{address}/fund", httpapi.Handle(respond, http.StatusOK, a.fund))
}

// Listed is a payment as operators see it.
type Listed struct {
	ID          string        `json:"id"`
	State       payment.State `json:"state"`
	Reason      x402.Reason   `json:"reason"`
	Route       string        `json:"route"`   // empty: another seller's
	Account     string        `json:"account"` // of that seller
	Resource    string        `json:"resource"`
	Network     string        `json:"network"`
	Asset       string        `json:"asset"`
	Payer       string        `json:"payer"`
	PayTo       string        `json:"pay_to"`
	Amount      string        `json:"amount"` // in the token's smallest units
	Nonce       string        `json:"nonce"`
	Transaction string        `json:"transaction"`
	RequestID   string        `json:"request_id"`
	CreatedAt   time.Time     `json:"created_at"`
	EndedAt     *time.Time    `json:"ended_at"`
}

func listed(p payment.Payment) Listed {
	return Listed{
		ID: p.ID, State: p.State, Reason: p.Reason, Route: p.Route, Account: p.Account, Resource: p.Requirement.Resource, Network: p.Network,
		Asset: p.Domain.Token.String(), Payer: p.From, PayTo: p.To, Amount: string(p.Value), Nonce: p.Nonce, Transaction: p.Transaction,
		RequestID: p.RequestID, CreatedAt: p.CreatedAt.UTC(), EndedAt: p.EndedAt,
	}
}

// Revenue is what a route has earned by settled payments.
type Revenue struct {
	Route    string `json:"route"`
	Network  string `json:"network"`
	Asset    string `json:"asset"`
	Payments int64  `json:"payments"`
	Amount   string `json:"amount"` // in the token's smallest units
}

// Payments is the answer of GET payments.
type Payments struct {
	paging.List[Listed]
	Revenue []Revenue `json:"revenue"` // of all payments that match, not of the page only
}

// table is how payments are listed: newest first.
var table = paging.Table[Listed]{
	Columns: columns, From: "x402_payments",
	Scan: func(r pgx.CollectableRow) (Listed, error) {
		p, err := scan(r)
		return listed(p), err
	},
	Sorts: []paging.Sort[Listed]{paging.Time("created_at", "created_at", func(l Listed) time.Time { return l.CreatedAt })},
	ID:    "id", IDOf: func(l Listed) string { return l.ID },
	Created: "created_at",
}

var states = []payment.State{payment.Granted, payment.Settling, payment.Settled, payment.Failed, payment.Released, payment.Abandoned, payment.Unresolved}

// list answers GET payments?route=&state=&payer=&limit=&offset=.
func (a Admin) list(r *http.Request, _ httpapi.None) (p Payments, err error) {
	q := r.URL.Query()
	page, details := table.Parse(q)
	state := q.Get("state")
	if state != "" && !slices.Contains(states, payment.State(state)) {
		details = append(details, decision.Detail{Field: "state", Issue: "is not a state", Expected: strings.Trim(fmt.Sprint(states), "[]")})
	}
	payer := strings.ToLower(q.Get("payer"))
	if payer != "" && !x402.IsAddress(payer) {
		details = append(details, decision.Detail{Field: "payer", Issue: "is not an address", Expected: "0x and 40 hexadecimal digits"})
	}
	if err := apierror.Invalid(details); err != nil {
		return p, err
	}
	if p, err = a.Find(r.Context(), page, q.Get("route"), state, payer); err != nil {
		return p, fmt.Errorf("list payments: %w", err)
	}
	return p, nil
}

// Find reads one page of the payments with a route, state and payer, newest first,
// and the revenue of all of them; empty: any.
func (a Admin) Find(ctx context.Context, page paging.Page, route, state, payer string) (p Payments, err error) {
	const matching = `($1 = '' OR route = $1) AND ($2 = '' OR state = $2) AND ($3 = '' OR payer = $3)`
	list, err := table.Read(ctx, a.DB, page, matching, route, state, payer)
	if err != nil {
		return p, err
	}
	rows, _ := a.DB.Query(ctx, `SELECT route, network, asset, count(*), sum(amount)::text FROM x402_payments WHERE `+matching+`
		AND created_at >= $4::timestamptz AND created_at < $5::timestamptz AND state = 'settled' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
		route, state, payer, bound(page.From, pgtype.NegativeInfinity), bound(page.To, pgtype.Infinity))
	earned, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Revenue])
	if earned == nil {
		earned = []Revenue{}
	}
	return Payments{list, earned}, err
}

// bound is a bound of time, or, where there is none, one that excludes nothing.
func bound(at time.Time, none pgtype.InfinityModifier) pgtype.Timestamptz {
	if at.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: none, Valid: true}
	}
	return pgtype.Timestamptz{Time: at, Valid: true}
}

// account reads the address in the path, and takes the configured token.
func (a Admin) account(r *http.Request) (ledger.Account, error) {
	address := strings.ToLower(chi.URLParam(r, "address"))
	if !x402.IsAddress(address) {
		return ledger.Account{}, malformed("address", "is not an address", "0x and 40 hexadecimal digits")
	}
	d, err := a.Document(r.Context())
	if err != nil {
		return ledger.Account{}, err
	}
	t := d.X402.Terms()
	token, err := evm.ParseAddress(t.Asset)
	if err != nil {
		return ledger.Account{}, apierror.Errorf(decision.Conflict, "The configuration has no section x402, so there is no token.")
	}
	return ledger.Account{Chain: x402.Chain(t.Network), Asset: token.String(), Address: address}, nil
}

// balance is what an address has. Amounts are in the token's smallest units.
type balance struct {
	Address  string `json:"address"`
	Balance  string `json:"balance"`  // what it can still spend, and what is held
	Held     string `json:"held"`     // for payments under way
	Received string `json:"received"` // by settled payments
}

func (a Admin) balance(r *http.Request, _ httpapi.None) (balance, error) {
	account, err := a.account(r)
	if err != nil {
		return balance{}, err
	}
	b, err := ledger.Ledger{DB: a.DB}.Balance(r.Context(), account)
	return balance{account.Address, atomic(uint64(b.Amount)), atomic(uint64(b.Held)), atomic(uint64(b.Received))}, err
}

// fundRequest is what an address is to be given.
type fundRequest struct {
	Amount string `json:"amount"`
}

func (a Admin) fund(r *http.Request, in fundRequest) (balance, error) {
	account, err := a.account(r)
	if err != nil {
		return balance{}, err
	}
	amount, err := strconv.ParseInt(in.Amount, 10, 64)
	if err != nil || amount <= 0 || amount > ledger.MaxFund {
		return balance{}, malformed("amount", "is not an amount", "a whole number of the token's smallest units, as a string")
	}
	if err := (ledger.Ledger{DB: a.DB}).Fund(r.Context(), account, amount); err != nil {
		return balance{}, err
	}
	return a.balance(r, httpapi.None{})
}

// atomic writes an amount as the protocol does.
func atomic(n uint64) string { return strconv.FormatUint(n, 10) }
