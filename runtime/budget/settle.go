package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/runtime/chat"
)

// settlement is what one request took.
type settlement struct {
	id, account, credential string
	model                   string
	usage                   chat.Usage
	at                      time.Time
	frees                   string // a hold that is over uncounted, so that it can be taken again; "": none
}

// reservation implements chat.Reservation.
type reservation struct {
	ledger *Ledger
	s      settlement
	own    string // the id of this attempt, which its repetition does not have
	held   bool   // tokens are set aside
}

// Settle records u. What was set aside is given back before it returns, so that
// the caller's next request finds it; a request without a budget is recorded
// within Gather, together with others.
//
// While the database is away, settlements are kept in memory, and recorded once
// it is back: an error then says so, and nothing is lost unless the process ends
// first.
func (r *reservation) Settle(ctx context.Context, model string, u chat.Usage) error {
	s := r.s
	s.model, s.usage, s.at = model, u, r.ledger.Now()
	if u.Refused && s.id != r.own {
		s.id, s.frees = r.own, s.id
	}
	var err error
	if r.held {
		if err = r.ledger.record(ctx, []settlement{s}); err == nil {
			return nil
		}
	}
	if !r.ledger.keep(s) {
		return errors.Join(errors.New("tokens are lost, as too many settlements wait already"), err)
	}
	if err != nil {
		return fmt.Errorf("tokens are recorded later: %w", err)
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
	select {
	case l.kick <- struct{}{}:
	default: // somebody has said so already
	}
	return true
}

// Run records what waits and prunes what is over, until ctx ends; then it tries
// once more to record what waits.
func (l *Ledger) Run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	gather := time.NewTimer(0)
	defer gather.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			l.refreshing.Wait()
			l.Flush(last)
			return
		case <-l.kick:
			gather.Reset(l.Gather)
		case <-gather.C:
			l.Flush(ctx)
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
	l.unsettled, l.recording = nil, l.recording+len(waiting)
	l.mu.Unlock()
	defer func(n int) {
		l.mu.Lock()
		l.recording -= n
		l.mu.Unlock()
	}(len(waiting))
	for len(waiting) > 0 {
		n := together(waiting)
		if err := l.recordOrDrop(ctx, waiting[:n]); err != nil {
			l.Log.ErrorContext(ctx, "tokens wait to be recorded", "settlements", len(waiting), "cause", err)
			l.mu.Lock()
			l.unsettled = append(waiting, l.unsettled...)
			n := len(l.unsettled)
			l.mu.Unlock()
			return n
		}
		waiting = waiting[n:]
	}
	return 0
}

// recordOrDrop records all of list but those that can never be recorded, as
// their account is gone.
func (l *Ledger) recordOrDrop(ctx context.Context, list []settlement) error {
	err := l.record(ctx, list)
	name := postgres.Constraint(err)
	if name == "" {
		return err
	}
	if len(list) == 1 {
		l.Log.ErrorContext(ctx, "tokens are lost", "account", list[0].account, "constraint", name)
		return nil
	}
	// One of them stands in the way of the others. Recording one again does no
	// harm if a later one fails.
	for i := range list {
		if err := l.recordOrDrop(ctx, list[i:i+1]); err != nil {
			return err
		}
	}
	return nil
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
	rows, _ := db.Query(ctx, `
		SELECT day, credential_id AS credential, model, requests, prompt_tokens AS prompt, completion_tokens AS completion, estimated_tokens AS estimated
		FROM token_usage WHERE account_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day, credential_id, model`, account, from, to)
	return pgx.CollectRows(rows, pgx.RowToStructByName[Line])
}
