package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// told keeps the events of committed transactions in a table, as the webhook service does.
type told struct{ fail bool }

func (e *told) EmitTx(ctx context.Context, tx pgx.Tx, ev events.Event) error {
	if e.fail {
		return errors.New("the process dies")
	}
	_, err := tx.Exec(ctx, `INSERT INTO told VALUES ($1)`, fmt.Sprintf("%s %v %v of %v until %v", ev.Data["resource"], ev.Data["threshold"], ev.Data["current_usage"], ev.Data["quota"], ev.Data["period_end"]))
	return err
}

func TestAccountsAreToldOnceOfEachShare(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	clock := time.Date(2026, 3, 15, 10, 0, 0, 0, time.UTC)
	s, to := Store{DB: db, Now: func() time.Time { return clock }}, &told{}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE told (what text)`)
	exec(`INSERT INTO accounts (id, name, plan) VALUES ('acct_0000000000001', 'a', 'free'), ('acct_0000000000002', 'b', 'enterprise')`)
	exec(`INSERT INTO request_quotas (plan, monthly) VALUES ('free', 1000)`)
	exec(`UPDATE token_budgets SET daily = 100, monthly = 1000 WHERE plan = 'free'`)
	// Requests are those of all products; the other account has no quota.
	exec(`INSERT INTO usage_totals VALUES ('acct_0000000000001', '2026-03-01', 'a', 400), ('acct_0000000000001', '2026-03-01', 'b', 399), ('acct_0000000000001', '2026-02-01', 'a', 2000), ('acct_0000000000002', '2026-03-01', 'a', 5000)`)
	want := func(list ...string) {
		t.Helper()
		var mu sync.Mutex
		total := 0
		var g errgroup.Group
		for range 4 { // workers at once
			g.Go(func() error {
				n, err := s.Warn(t.Context(), to)
				mu.Lock()
				total += n
				mu.Unlock()
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		rows, _ := db.Query(t.Context(), `SELECT what FROM told ORDER BY what`)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || !slices.Equal(got, list) || total != len(list) {
			t.Errorf("%d: %q %v", total, got, err)
		}
		exec(`TRUNCATE told`)
	}
	want()
	exec(`UPDATE usage_totals SET requests = 401 WHERE product = 'a' AND month = '2026-03-01' AND account_id = 'acct_0000000000001'`)
	to.fail = true
	if _, err := s.Warn(t.Context(), to); err == nil {
		t.Error("the failure is not told")
	}
	to.fail = false
	want("requests 80 800 of 1000 until 2026-03-31T23:59:59Z")
	want()
	exec(`UPDATE usage_totals SET requests = 1000 WHERE product = 'a' AND month = '2026-03-01' AND account_id = 'acct_0000000000001'`)
	want("requests 100 1399 of 1000 until 2026-03-31T23:59:59Z", "requests 90 1399 of 1000 until 2026-03-31T23:59:59Z")
	exec(`INSERT INTO token_totals VALUES ('acct_0000000000001', '2026-03-15', 95, '2026-03-01', 850), ('acct_0000000000002', '2026-03-15', 95, '2026-03-01', 850)`)
	want("tokens_daily 80 95 of 100 until 2026-03-15T23:59:59Z", "tokens_daily 90 95 of 100 until 2026-03-15T23:59:59Z", "tokens_monthly 80 850 of 1000 until 2026-03-31T23:59:59Z")
	// The last requests of a day end after it, and the next day has begun.
	exec(`UPDATE token_totals SET day = '2026-03-16', day_tokens = 81, month_tokens = 860`)
	exec(`INSERT INTO token_usage VALUES ('acct_0000000000001', 'key_1', '2026-03-15', 'm', 2, 50, 50, 0)`)
	clock = time.Date(2026, 3, 16, 0, 5, 0, 0, time.UTC)
	want("tokens_daily 100 100 of 100 until 2026-03-15T23:59:59Z", "tokens_daily 80 81 of 100 until 2026-03-16T23:59:59Z")
	// So of a month.
	exec(`UPDATE token_totals SET day = '2026-04-01', day_tokens = 1, month = '2026-04-01', month_tokens = 1`)
	exec(`INSERT INTO token_usage VALUES ('acct_0000000000001', 'key_1', '2026-03-20', 'm', 2, 400, 400, 0)`)
	clock = time.Date(2026, 4, 1, 0, 5, 0, 0, time.UTC)
	want("tokens_monthly 90 900 of 1000 until 2026-03-31T23:59:59Z")
	clock = clock.AddDate(0, 3, 0)
	want()
	var left int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM usage_warnings`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d are kept for ever, %v", left, err)
	}
}
