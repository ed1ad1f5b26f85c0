// Package budget meters the tokens of chat completions and holds accounts to
// their plans' daily and monthly budgets, in Postgres. It is the chat.Ledger
// that ships.
//
// Rules, for any number of runtimes:
//  1. A request is admitted only if the tokens it can take at most fit into what
//     is used plus what is set aside, both checked under a lock on the account.
//  2. A settlement counts once, however often it is sent, and whoever sends it: the
//     repetition of a request with an Idempotency-Key has the hold of the first, unless
//     that was refused.
//  3. A request that is never settled gives its tokens back after Hold.
//  4. Days and months are those of UTC.
package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/runtime/chat"
)

// Config says how to meter.
type Config struct {
	DB   postgres.DB
	Log  *slog.Logger     // nil: slog.Default
	Now  func() time.Time // the clock; nil: time.Now
	Hold time.Duration    // how long tokens stay set aside; 0: 1 hour
	// Gather is how long settlements wait for others, to be recorded together;
	// 0: 10 milliseconds. A process that is killed loses those.
	Gather time.Duration
	// Metrics is where sluice_chat_settlements_waiting is registered; nil: nowhere.
	Metrics prometheus.Registerer
}

// planAge is how long a plan's budget is believed before it is looked at again.
const planAge = time.Second

// maxUnsettled bounds the settlements that wait for the database to come back.
const maxUnsettled = 10_000

// Ledger implements chat.Ledger.
type Ledger struct {
	Config
	mu         sync.Mutex
	refreshing sync.WaitGroup // reads beside requests
	plans      map[string]limits
	unsettled  []settlement
	recording  int           // those that are being recorded, out of unsettled
	kick       chan struct{} // something waits
}

// limits is a plan's budget; 0 is no end.
type limits struct {
	daily, monthly int64
	read           time.Time
	asked          bool // it is being read anew
}

// New returns a ledger. Run must run for as long as it is used.
func New(c Config) *Ledger {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Hold <= 0 {
		c.Hold = time.Hour
	}
	if c.Gather <= 0 {
		c.Gather = 10 * time.Millisecond
	}
	l := &Ledger{Config: c, plans: map[string]limits{}, kick: make(chan struct{}, 1)}
	if c.Metrics != nil {
		c.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_chat_settlements_waiting", Help: "Completions that are over and not recorded yet."}, l.waiting))
	}
	return l
}

// waiting counts the settlements that are not in the database yet.
func (l *Ledger) waiting() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(len(l.unsettled) + l.recording)
}

// Reserve implements chat.Ledger. A caller without an account is metered by
// whoever it pays, and not here.
func (l *Ledger) Reserve(ctx context.Context, c identity.Caller, tokens int) (chat.Reservation, error) {
	if c.Account == "" {
		return nothing{}, nil
	}
	own := rand.Text()
	r := &reservation{ledger: l, own: "hold_" + own, s: settlement{id: "hold_" + cmp.Or(idempotency.ID(ctx), own), account: c.Account, credential: c.Key}}
	// Plans without a budget cost no transaction here; what they use is
	// recorded when it is known.
	limit, err := l.limits(ctx, c.Plan)
	if err != nil || limit.daily == 0 && limit.monthly == 0 {
		return r, err
	}
	err = postgres.InTx(ctx, l.DB, func(tx pgx.Tx) error {
		return l.hold(ctx, tx, r.s, limit, int64(tokens))
	})
	if err != nil {
		return nil, err
	}
	r.held = true
	return r, nil
}

// limits returns a plan's budget. Once known it is read anew beside the request
// that finds it old, which does not wait: a change holds for the next one. While
// the database is away, the last one known holds: plans without a budget go on.
func (l *Ledger) limits(ctx context.Context, plan string) (limits, error) {
	l.mu.Lock()
	known, ok := l.plans[plan]
	stale := ok && !known.asked && l.Now().Sub(known.read) >= planAge
	if stale {
		known.asked = true // one asks, the others go on
		l.plans[plan] = known
	}
	l.mu.Unlock()
	if !ok {
		return l.readLimits(ctx, plan)
	}
	if stale {
		l.refreshing.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if _, err := l.readLimits(ctx, plan); err != nil {
				l.Log.WarnContext(ctx, "the last budget known stays in force", "plan", plan, "cause", err)
				l.remember(plan, limits{daily: known.daily, monthly: known.monthly, read: l.Now()})
			}
		})
	}
	return known, nil
}

// readLimits reads a plan's budget from the database.
func (l *Ledger) readLimits(ctx context.Context, plan string) (limits, error) {
	fresh := limits{read: l.Now()}
	err := l.DB.QueryRow(ctx, `
		SELECT coalesce(max(daily), 0), coalesce(max(monthly), 0) FROM token_budgets WHERE plan = $1`, plan).
		Scan(&fresh.daily, &fresh.monthly)
	if err != nil {
		return limits{}, fmt.Errorf("read the budget of plan %q: %w", plan, err)
	}
	return l.remember(plan, fresh), nil
}

// remember keeps fresh unless a later answer is there, and returns what is kept.
func (l *Ledger) remember(plan string, fresh limits) limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.plans) > 1000 { // names come from edges, but memory is ours
		clear(l.plans)
	}
	if later := l.plans[plan]; later.read.After(fresh.read) {
		return later
	}
	l.plans[plan] = fresh
	return fresh
}

// hold sets tokens aside, or fails with BILLING_002.
func (l *Ledger) hold(ctx context.Context, tx pgx.Tx, s settlement, limit limits, tokens int64) error {
	now := l.Now()
	daily, monthly, err := totals(ctx, tx, s.account, now) // locks the account
	if err != nil {
		return err
	}
	var held int64
	err = tx.QueryRow(ctx, `
		SELECT coalesce(sum(tokens), 0)::bigint FROM token_holds
		WHERE account_id = $1 AND settled_at IS NULL AND expires_at > $2 AND id <> $3`, s.account, now, s.id).Scan(&held)
	if err != nil {
		return fmt.Errorf("sum what is set aside: %w", err)
	}
	if err := checkLimits(limit, daily+held, monthly+held, tokens); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO token_holds AS h (id, account_id, tokens, expires_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET tokens = excluded.tokens, expires_at = excluded.expires_at WHERE h.settled_at IS NULL`,
		s.id, s.account, tokens, now.Add(l.Hold))
	if err != nil {
		return fmt.Errorf("set tokens aside: %w", err)
	}
	return nil
}

// checkLimits says whether tokens fit, and lists every budget into which they do not.
func checkLimits(limit limits, day, month, tokens int64) error {
	var details []decision.Detail
	check := func(field string, budget, taken int64) {
		if budget > 0 && taken+tokens > budget {
			details = append(details, decision.Detail{
				Field:    field,
				Issue:    fmt.Sprintf("the request may take %d tokens, and %d are left", tokens, max(0, budget-taken)),
				Expected: fmt.Sprintf("at most %d", budget),
			})
		}
	}
	check("tokens.daily", limit.daily, day)
	check("tokens.monthly", limit.monthly, month)
	if details == nil {
		return nil
	}
	return &apierror.Error{Code: decision.QuotaUsed, Message: "The plan's token budget is used up.", Details: details}
}

// totals returns an account's sums, begun anew where a day or month has begun.
// It locks the account until tx ends.
func totals(ctx context.Context, tx pgx.Tx, account string, now time.Time) (daily, monthly int64, err error) {
	today := day(now)
	err = tx.QueryRow(ctx, `
		INSERT INTO token_totals AS t (account_id, day, month) VALUES ($1, $2, $3)
		ON CONFLICT (account_id) DO UPDATE SET `+addToTotals+`
		RETURNING day_tokens, month_tokens`, account, today, firstOfMonth(today)).Scan(&daily, &monthly)
	if err != nil {
		return 0, 0, fmt.Errorf("lock the sums of account %s: %w", account, err)
	}
	return daily, monthly, nil
}

// nothing is the reservation of a caller that is not metered here.
type nothing struct{}

// Settle does nothing.
func (nothing) Settle(context.Context, string, chat.Usage) error { return nil }
