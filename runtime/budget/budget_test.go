package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/runtime/chat"
)

const account = "acct_0000000000001"

// bundle is a ledger over a database of its own, with a clock that stands.
type bundle struct {
	*Ledger
	pool *pgxpool.Pool
	now  time.Time
}

func setup(t *testing.T, daily, monthly any) *bundle {
	t.Helper()
	b := &bundle{pool: pgtest.Pool(t), now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	b.exec(t, `INSERT INTO accounts (id, name, plan) VALUES ($1, 'a', 'pro')`, account)
	b.exec(t, `UPDATE token_budgets SET daily = $1, monthly = $2 WHERE plan = 'pro'`, daily, monthly)
	b.Ledger = New(Config{DB: b.pool, Now: func() time.Time { return b.now }, Log: slog.New(slog.DiscardHandler)})
	return b
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func caller() identity.Caller { return identity.Caller{Account: account, Key: "key_1", Plan: "pro"} }

// take reserves tokens; the reservation is nil if they are refused.
func (b *bundle) take(t *testing.T, tokens int) chat.Reservation {
	t.Helper()
	r, err := b.Reserve(t.Context(), caller(), tokens)
	if err != nil && apierror.Code(err) != decision.QuotaUsed {
		t.Fatal(err)
	}
	return r
}

func settle(t *testing.T, r chat.Reservation, total int) {
	t.Helper()
	if err := r.Settle(t.Context(), "m", chat.Usage{Prompt: 1, Completion: total - 1}); err != nil {
		t.Fatal(err)
	}
}

func TestReservedTokensCount(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, nil)
	first := b.take(t, 60)
	if first == nil || b.take(t, 41) != nil || b.take(t, 40) == nil {
		t.Fatal("the reservation does not count")
	}
	settle(t, first, 10)
	if b.take(t, 51) != nil || b.take(t, 50) == nil {
		t.Error("50 are used and set aside, so that 50 are left")
	}
}

func TestRefusalNamesEveryBudget(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, 90)
	_, err := b.Reserve(t.Context(), caller(), 101)
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.QuotaUsed || len(e.Details) != 2 || e.Details[0].Field != "tokens.daily" || e.Details[1].Field != "tokens.monthly" {
		t.Errorf("got %+v", err)
	}
}

// TestParallelRequestsCannotOverrun has many more requests than the budget
// bears, each of which takes all that it reserved, from two runtimes.
func TestParallelRequestsCannotOverrun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, nil)
	other := New(b.Config)
	var mu sync.Mutex
	var all sync.WaitGroup
	admitted := 0
	for i := range 60 {
		l := b.Ledger
		if i%2 == 1 {
			l = other
		}
		all.Go(func() {
			r, err := l.Reserve(t.Context(), caller(), 70)
			if err != nil {
				return
			}
			if err := r.Settle(t.Context(), "m", chat.Usage{Prompt: 20, Completion: 50}); err != nil {
				t.Error(err)
			}
			mu.Lock()
			admitted++
			mu.Unlock()
		})
	}
	all.Wait()
	if admitted != 14 {
		t.Errorf("%d of 14 requests that fit were admitted", admitted)
	}
}

func TestDaysAndMonths(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, 150)
	settle(t, b.take(t, 100), 100)
	if b.take(t, 1) != nil {
		t.Error("the day's budget is used up")
	}
	b.now = b.now.Add(-24 * time.Hour) // a clock that is behind
	if b.take(t, 1) != nil {
		t.Error("the day was turned back")
	}
	b.now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC) // a new day, and a new month
	settle(t, b.take(t, 100), 100)
	b.now = b.now.Add(24 * time.Hour)
	if b.take(t, 51) != nil || b.take(t, 50) == nil {
		t.Error("50 are left of the month")
	}
}

func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, nil)
	lost := b.take(t, 100)
	b.now = b.now.Add(time.Hour + time.Second)
	late := b.take(t, 100)
	if late == nil {
		t.Fatal("tokens of a runtime that died are never given back")
	}
	settle(t, lost, 30) // it was only slow
	settle(t, late, 30)
	if b.take(t, 41) != nil || b.take(t, 40) == nil {
		t.Error("both count")
	}
}

func TestSettlementsCountOnce(t *testing.T) {
	t.Parallel()
	for name, daily := range map[string]any{"with a budget": 1000, "without": nil} {
		b := setup(t, daily, nil)
		r := b.take(t, 100)
		for range 3 {
			settle(t, r, 50)
		}
		if lines := b.report(t); len(lines) != 1 || lines[0].Requests != 1 || lines[0].Prompt != 1 || lines[0].Completion != 49 {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}

// report records what waits and reads what was used.
func (b *bundle) report(t *testing.T) []Line {
	t.Helper()
	if n := b.Flush(t.Context()); n > 0 {
		t.Fatalf("%d settlements wait still", n)
	}
	lines, err := Report(t.Context(), b.pool, account, b.now.AddDate(0, 0, -1), b.now)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestSettlementsTogether records many at once: of two days, with the same one
// twice, and with one that used nothing.
func TestSettlementsTogether(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, nil)
	for i := range 3 * maxTogether {
		at := b.now.Add(time.Duration(i/(2*maxTogether)) * 24 * time.Hour) // the next day is also the next month
		s := settlement{id: fmt.Sprintf("hold_%d", i), account: account, credential: "key_1", model: "m", usage: chat.Usage{Prompt: 1, Completion: 2}, at: at}
		if i%10 == 9 {
			s.usage = chat.Usage{}
		}
		b.keep(s)
		if i == 0 {
			b.keep(s)
		}
	}
	b.now = b.now.Add(24 * time.Hour)
	lines := b.report(t)
	if len(lines) != 2 || lines[0].Requests != 900 || lines[1].Requests != 450 || lines[0].Completion != 1800 || lines[1].Prompt != 450 {
		t.Errorf("got %+v", lines)
	}
	var day, month int
	err := b.pool.QueryRow(t.Context(), `SELECT day_tokens, month_tokens FROM token_totals WHERE account_id = $1`, account).Scan(&day, &month)
	if err != nil || day != 1350 || month != 1350 {
		t.Errorf("sums %d, %d, %v", day, month, err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, nil)
	for _, c := range []struct {
		key, model string
		usage      chat.Usage
	}{
		{"key_1", "a", chat.Usage{Prompt: 1, Completion: 2}},
		{"key_1", "a", chat.Usage{Prompt: 10, Completion: 20, Estimated: true}},
		{"key_2", "a", chat.Usage{Prompt: 100, Completion: 200}},
		{"key_2", "b", chat.Usage{}}, // nothing was produced
	} {
		r, err := b.Reserve(t.Context(), identity.Caller{Account: account, Key: c.key, Plan: "pro"}, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context(), c.model, c.usage); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	want := []Line{{day, "key_1", "a", 2, 11, 22, 30}, {day, "key_2", "a", 1, 100, 200, 0}}
	got := b.report(t)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v", got)
	}
	if _, err := Report(t.Context(), b.pool, account, b.now, b.now.AddDate(0, 0, -1)); err == nil {
		t.Error("a report that ends before it begins")
	}
}

func TestCallersWithoutAnAccountAreNotMetered(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	r, err := b.Reserve(t.Context(), identity.Caller{Key: "pay_1"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, r, 100)
	if lines := b.report(t); len(lines) != 0 {
		t.Errorf("got %+v", lines)
	}
}

// TestDatabaseAway settles while no connection works, and later.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, nil)
	r := b.take(t, 50)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Settle(gone, "m", chat.Usage{Prompt: 30}); err == nil {
		t.Fatal("settled without a database")
	}
	if n := b.Flush(gone); n != 1 {
		t.Errorf("%d wait", n)
	}
	if n := b.Flush(t.Context()); n != 0 {
		t.Errorf("%d wait still", n)
	}
	if lines := b.report(t); len(lines) != 1 || lines[0].Prompt != 30 {
		t.Errorf("got %+v", lines)
	}
	for _, s := range []settlement{
		{id: "hold_x", account: account, model: "m", usage: chat.Usage{Prompt: 1}, at: b.now},
		{id: "hold_y", account: "acct_0000000000009", at: b.now},
		{id: "hold_z", account: account, model: "m", usage: chat.Usage{Prompt: 2}, at: b.now},
	} {
		b.keep(s)
	}
	if lines := b.report(t); len(lines) != 2 || lines[0].Prompt != 3 {
		t.Errorf("beside a settlement for an account that is gone: %+v", lines)
	}
	for range maxUnsettled {
		b.keep(settlement{})
	}
	if b.keep(settlement{}) {
		t.Error("what waits has no bound")
	}
}

func TestPlansWithoutABudgetOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		daily any
		admit bool
	}{"no budget": {nil, true}, "a budget": {100, false}} {
		b := setup(t, c.daily, nil)
		settle(t, b.take(t, 1), 1)
		b.pool.Close()
		b.now = b.now.Add(time.Minute)
		if _, err := b.Reserve(t.Context(), caller(), 1); (err == nil) != c.admit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAChangedBudgetIsReadBesideRequests has an idle plan whose budget goes: one
// request more is judged by the old one, without waiting, and the next by the new.
func TestAChangedBudgetIsReadBesideRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, nil)
	b.take(t, 1)
	b.exec(t, `UPDATE token_budgets SET daily = 10 WHERE plan = 'pro'`)
	if b.take(t, 11) == nil {
		t.Error("what was just read was read again")
	}
	b.now = b.now.Add(planAge)
	if b.take(t, 11) == nil {
		t.Error("a request waited for the new budget")
	}
	b.refreshing.Wait()
	if b.take(t, 1) != nil {
		t.Error("the new budget does not hold")
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, nil)
	settle(t, b.take(t, 10), 10)
	b.take(t, 10)
	for after, want := range map[time.Duration]int{0: 2, 90 * time.Minute: 1, 3 * time.Hour: 0} {
		left := 0
		b.now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).Add(after)
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := New(Config{DB: tx, Now: b.Now}).Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM token_holds`).Scan(&left); err != nil || left != want {
			t.Errorf("after %v: %d holds, want %d, %v", after, left, want, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunRecordsWhatWaitsAtItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, nil)
	b.keep(settlement{id: "hold_1", account: account, credential: "key_1", model: "m", usage: chat.Usage{Prompt: 5}, at: b.now})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	b.Run(ctx)
	if lines := b.report(t); len(lines) != 1 {
		t.Errorf("got %+v", lines)
	}
}

// repeated runs f in the name of a request with an Idempotency-Key, as if it had never run.
func (b *bundle) repeated(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	b.exec(t, `DELETE FROM idempotent_answers`)
	b.exec(t, `DELETE FROM idempotent_claims`)
	r := httptest.NewRequestWithContext(identity.With(t.Context(), caller()), http.MethodPost, "/v1/chat/completions", nil)
	r.Header.Set(idempotency.Header, "k")
	m := idempotency.New(idempotency.Config{DB: b.pool})
	if err := m.Stream(httptest.NewRecorder(), r, []byte("body"), func(_ http.ResponseWriter, r *http.Request) { f(r.Context()) }); err != nil {
		t.Fatal(err)
	}
}

// A completion with an Idempotency-Key that runs again, after a crash at whatever point, is
// charged once, and holds its tokens once.
func TestARepeatedCompletionIsChargedOnce(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]any{"with a budget": 1000, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, held, nil)
			for _, died := range []bool{true, false, false} {
				b.repeated(t, func(ctx context.Context) {
					r, err := b.Reserve(ctx, caller(), 600)
					if err != nil {
						t.Fatal(err)
					}
					if !died {
						settle(t, r, 100)
					}
				})
			}
			b.Flush(t.Context())
			lines, err := Report(t.Context(), b.pool, account, b.now.Add(-24*time.Hour), b.now)
			if err != nil || len(lines) != 1 || lines[0].Requests != 1 || lines[0].Prompt+lines[0].Completion != 100 {
				t.Errorf("%+v %v", lines, err)
			}
			if r := b.take(t, 900); r == nil {
				t.Error("tokens are still set aside")
			}
		})
	}
}

// What was refused is over: its repetition, by the same Idempotency-Key, holds tokens and is
// charged like any other, and what a refusal took is charged too.
func TestARepetitionOfWhatWasRefusedIsCharged(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]any{"with a budget": 1000, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, held, nil)
			ask := func(usage chat.Usage) {
				b.repeated(t, func(ctx context.Context) {
					r, err := b.Reserve(ctx, caller(), 600)
					if err != nil {
						t.Fatal(err)
					}
					if held != nil && b.take(t, 401) != nil {
						t.Error("nothing is set aside")
					}
					for range 2 { // a second settlement does nothing
						if err := r.Settle(ctx, "m", usage); err != nil {
							t.Fatal(err)
						}
					}
				})
				b.Flush(t.Context())
			}
			ask(chat.Usage{Refused: true})
			ask(chat.Usage{Refused: true, Prompt: 30, Estimated: true})
			ask(chat.Usage{Prompt: 20, Completion: 80})
			lines, err := Report(t.Context(), b.pool, account, b.now.Add(-24*time.Hour), b.now)
			if err != nil || len(lines) != 1 || lines[0].Requests != 2 || lines[0].Prompt+lines[0].Completion != 130 {
				t.Errorf("%+v %v", lines, err)
			}
			if b.take(t, 870) == nil || held != nil && b.take(t, 1) != nil {
				t.Error("870 of 1,000 are left")
			}
		})
	}
}

// A refusal that is recorded late, since the database was away, takes nothing from its
// repetition, which is under way.
func TestALateRefusalLeavesItsRepetitionAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, nil)
	late := settlement{id: "hold_own", account: account, credential: "key_1", model: "m", at: b.now, usage: chat.Usage{Refused: true}}
	b.repeated(t, func(ctx context.Context) { late.frees = "hold_" + idempotency.ID(ctx) })
	b.now = b.now.Add(time.Second)
	b.repeated(t, func(ctx context.Context) {
		if _, err := b.Reserve(ctx, caller(), 600); err != nil {
			t.Fatal(err)
		}
		if err := b.record(ctx, []settlement{late}); err != nil || b.take(t, 401) != nil {
			t.Errorf("what the repetition holds is given back: %v", err)
		}
	})
}
