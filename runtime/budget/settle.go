package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/runtime/chat"
)

// settlement is what one request took.
type settlement struct {
	id, account, credential string
	model                   string
	usage                   chat.Usage
	at                      time.Time
}

// reservation implements chat.Reservation.
type reservation struct {
	ledger *Ledger
	s      settlement
}

// Settle records u. While the database is away it is kept in memory, and
// recorded once it is back: the error then says so, and nothing is lost unless
// the process ends first.
func (r *reservation) Settle(ctx context.Context, model string, u chat.Usage) error {
	s := r.s
	s.model, s.usage, s.at = model, u, r.ledger.Now()
	err := r.ledger.settle(ctx, s)
	if err == nil {
		return nil
	}
	if !r.ledger.keep(s) {
		return fmt.Errorf("tokens are lost, as too many settlements wait already: %w", err)
	}
	return fmt.Errorf("tokens are recorded later: %w", err)
}

// settle counts s unless it is counted already.
func (l *Ledger) settle(ctx context.Context, s settlement) error {
	return postgres.InTx(ctx, l.DB, func(tx pgx.Tx) error {
		// A request without a budget has no hold yet: this row then only keeps
		// the same settlement from counting twice.
		tag, err := tx.Exec(ctx, `
			INSERT INTO token_holds AS h (id, account_id, tokens, expires_at, settled_at) VALUES ($1, $2, 0, $3, $3)
			ON CONFLICT (id) DO UPDATE SET tokens = 0, settled_at = excluded.settled_at, expires_at = excluded.expires_at
			WHERE h.settled_at IS NULL`, s.id, s.account, s.at)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		// Nothing used is nothing to record, but the hold is over all the same.
		if tag.RowsAffected() == 0 || s.usage.Total() == 0 {
			return nil
		}
		if _, _, err := totals(ctx, tx, s.account, s.at, int64(s.usage.Total())); err != nil {
			return err
		}
		return record(ctx, tx, s)
	})
}

// record adds s to what reports show.
func record(ctx context.Context, tx pgx.Tx, s settlement) error {
	// A report says how much of its sum the runtime had to count by itself.
	estimated := 0
	if s.usage.Estimated {
		estimated = s.usage.Total()
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO token_usage AS u (account_id, credential_id, day, model, requests, prompt_tokens, completion_tokens, estimated_tokens)
		VALUES ($1, $2, $3, $4, 1, $5, $6, $7)
		ON CONFLICT (account_id, day, credential_id, model) DO UPDATE SET
			requests          = u.requests + 1,
			prompt_tokens     = u.prompt_tokens + excluded.prompt_tokens,
			completion_tokens = u.completion_tokens + excluded.completion_tokens,
			estimated_tokens  = u.estimated_tokens + excluded.estimated_tokens`,
		s.account, s.credential, s.at.UTC().Truncate(24*time.Hour), s.model, s.usage.Prompt, s.usage.Completion, estimated)
	if err != nil {
		return fmt.Errorf("record usage: %w", err)
	}
	return nil
}

// keep holds a settlement for later, if there is room.
func (l *Ledger) keep(s settlement) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsettled) >= maxUnsettled {
		return false
	}
	l.unsettled = append(l.unsettled, s)
	return true
}

// Run records what waits and prunes what is over, until ctx ends; then it tries
// once more to record what waits.
func (l *Ledger) Run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			l.refreshing.Wait()
			l.Flush(last)
			return
		case <-tick.C:
			l.Flush(ctx)
			if err := l.Prune(ctx); err != nil {
				l.Log.WarnContext(ctx, "old token holds stay", "cause", err)
			}
		}
	}
}

// Flush records what waits, and returns how many settlements wait still.
func (l *Ledger) Flush(ctx context.Context) int {
	// What waits is taken out while it is tried, so that requests which end
	// meanwhile find the lock free.
	l.mu.Lock()
	waiting := l.unsettled
	l.unsettled = nil
	l.mu.Unlock()
	for i, s := range waiting {
		err := l.settle(ctx, s)
		if name := postgres.Constraint(err); name != "" { // its account is gone: it never will be
			l.Log.ErrorContext(ctx, "tokens are lost", "account", s.account, "constraint", name)
			continue
		}
		if err != nil {
			l.Log.ErrorContext(ctx, "tokens wait to be recorded", "settlements", len(waiting)-i, "cause", err)
			l.mu.Lock()
			l.unsettled = append(waiting[i:], l.unsettled...)
			defer l.mu.Unlock()
			return len(l.unsettled)
		}
	}
	return 0
}

// Prune removes holds that neither set tokens aside nor keep a settlement from
// counting twice any more.
func (l *Ledger) Prune(ctx context.Context) error {
	if _, err := l.DB.Exec(ctx, `DELETE FROM token_holds WHERE expires_at < $1`, l.Now().Add(-l.Hold)); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	return nil
}

// Line is one row of a report.
type Line struct {
	Day        time.Time `json:"day"`
	Credential string    `json:"credential_id"`
	Model      string    `json:"model"`
	Requests   int64     `json:"requests"`
	Prompt     int64     `json:"prompt_tokens"`
	Completion int64     `json:"completion_tokens"`
	Estimated  int64     `json:"estimated_tokens"`
}

// Report lists what an account used from one day to another, both included.
func Report(ctx context.Context, db postgres.DB, account string, from, to time.Time) ([]Line, error) {
	if to.Before(from) {
		return nil, errors.New("a report ends before it begins")
	}
	rows, err := db.Query(ctx, `
		SELECT day, credential_id AS credential, model, requests, prompt_tokens AS prompt, completion_tokens AS completion, estimated_tokens AS estimated
		FROM token_usage WHERE account_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day, credential_id, model`, account, from, to)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Line])
}
