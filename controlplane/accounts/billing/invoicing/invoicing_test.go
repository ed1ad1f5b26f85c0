package invoicing

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// issueTime is when the month of November 2026 may be issued.
var issueTime = at("2026-12-02 00:30")

type bundle struct {
	Store
	db     *pgxpool.Pool
	server *stripetest.Server
	clock  time.Time
	prices map[string]price.Plan
	since  time.Time // since when there are prices
}

func amount(t *testing.T, s string) price.Amount {
	t.Helper()
	a, err := price.ParseAmount(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.Pool(t), clock: issueTime, since: at("2026-11-20 00:00")}
	b.prices = map[string]price.Plan{"pro": {Currency: "USD", Monthly: 2900, Units: map[price.Metric]price.Unit{
		price.Requests:          {Amount: amount(t, "0.40"), Per: 1000, Included: 300},
		price.Tokens:            {Amount: amount(t, "2"), Per: 1_000_000},
		price.ConnectionMinutes: {Amount: amount(t, "0.01"), Per: 1},
		price.BytesOut:          {Amount: amount(t, "0.05"), Per: 1_000_000},
		price.StorageGBDays:     {Amount: amount(t, "0.001"), Per: 1},
	}}}
	b.Store = Store{DB: b.db, Provider: ledger.Ledger{}, Now: func() time.Time { return b.clock },
		Prices: func(_ context.Context, when time.Time) (Prices, error) {
			if when.Before(b.since) {
				return Prices{}, nil
			}
			return Prices{7, b.prices}, nil
		}}
	b.exec(t, `UPDATE usage_progress SET hours = $1, days = $1`, at("2026-10-01 00:00"))
	return b
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// charged has b charge by Stripe.
func (b *bundle) charged(t *testing.T) methods.Store {
	t.Helper()
	b.server = stripetest.New(t)
	b.Provider = b.server.Client()
	return methods.Store{DB: b.db, Provider: b.Provider, Now: b.Now}
}

// account makes an account on a plan, as old as the year.
func (b *bundle) account(t *testing.T, plan string) string {
	t.Helper()
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "A", plan)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE accounts SET created_at = '2026-01-01' WHERE id = $1`, a.ID)
	return a.ID
}

// use counts requests of an account on a day, of which ten were refused.
func (b *bundle) use(t *testing.T, account, when string, requests int) {
	t.Helper()
	b.exec(t, `INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency, open_millis)
		VALUES ($1, 0, $2, 'key_1', 'p', 'r', 2, $3, 10, 5, 1000000, array_fill(0::bigint, ARRAY[20]), 90001)`, account, at(when), requests+10)
}

func (b *bundle) issueAll(t *testing.T, want int) {
	t.Helper()
	if n, err := b.Issue(t.Context()); n != want || err != nil {
		t.Fatalf("%d issued, want %d: %v", n, want, err)
	}
}

// bill is the only invoice of an account.
func (b *bundle) bill(t *testing.T, account string) billing.Bill {
	t.Helper()
	list, total, err := paging.Rows(b.billing().Page(t.Context(), account, "", paging.Page{Limit: 10}))
	if err != nil || total != 1 {
		t.Fatal(list, err)
	}
	bill, err := b.billing().Bill(t.Context(), account, list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return bill
}

// TestEachLineIsRecomputable computes an invoice again from the answers that its lines name.
func TestEachLineIsRecomputable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := b.account(t, "free")
	b.exec(t, `UPDATE accounts SET plan = 'pro' WHERE id = $1`, account)
	b.exec(t, `INSERT INTO account_plans (account_id, plan, until) VALUES ($1, 'free', '2026-11-11')`, account)
	b.use(t, account, "2026-11-05 12:00", 5000) // on the plan without a price
	b.use(t, account, "2026-11-11 00:00", 1000)
	b.use(t, account, "2026-11-30 23:59", 2345)
	b.use(t, account, "2026-12-01 00:00", 7000) // in the next month
	b.use(t, "", "2026-11-20 00:00", 9000)      // of payers by x402, who have no account
	b.exec(t, `INSERT INTO token_usage (account_id, credential_id, day, model, requests, prompt_tokens, completion_tokens, estimated_tokens)
		VALUES ($1, 'k', '2026-11-12', 'm', 1, 2000000, 750000, 0), ($1, 'k', '2026-12-01', 'm', 1, 1000000, 0, 0)`, account)
	b.exec(t, `INSERT INTO storage_days (account_id, day, bytes) VALUES ($1, '2026-11-10', 9000000000), ($1, '2026-11-12', 1500000000), ($1, '2026-11-13', 1600000000)`, account)
	b.issueAll(t, 1)
	bill := b.bill(t, account)
	if bill.Status != billing.Open || bill.Currency != "USD" || bill.Number != "SLUICE-2026-11" || bill.ConfigVersion != 7 || !bill.DueAt.Equal(issueTime.Add(Terms)) {
		t.Errorf("%+v", bill)
	}
	want := map[string]string{
		"fee":                "20 - 0 = 1933",    // 29 × 20 ÷ 30
		"requests":           "3345 - 200 = 126", // 3145 × 0.40 ÷ 1000
		"tokens":             "2750000 - 0 = 550",
		"connection_minutes": "4 - 0 = 4", // twice 90.001 seconds
		"bytes_out":          "2000000 - 0 = 10",
		"storage_gb_days":    "4 - 0 = 0", // 3.1 GB for a day
	}
	var total int64
	for _, l := range bill.Lines {
		if got := fmt.Sprintf("%d - %d = %d", l.Quantity, l.Included, l.Amount); got != want[l.Metric] {
			t.Errorf("%s: %s, want %s", l.Metric, got, want[l.Metric])
		}
		delete(want, l.Metric)
		total += l.Amount
		b.recompute(t, account, l)
	}
	if total != bill.Amount || len(want) > 0 {
		t.Errorf("the lines are %d, the invoice %d; missing: %v", total, bill.Amount, want)
	}
}

// recompute computes a line from the answer to the request that it names, as a customer would.
func (b *bundle) recompute(t *testing.T, account string, l billing.Line) {
	t.Helper()
	unit, ok := new(big.Rat).SetString(l.UnitAmount)
	if !ok {
		t.Fatal(l)
	}
	cost := unit.Mul(unit, big.NewRat((l.Quantity-l.Included)*100, l.Per))
	off := cost.Sub(cost, big.NewRat(l.Amount, 1))
	if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
		t.Errorf("%s: %d is off by %s", l.Metric, l.Amount, off)
	}
	if l.Metric == "fee" {
		return
	}
	u, err := url.Parse(l.Usage)
	if err != nil || u.Path != "/v1/billing/usage" {
		t.Fatal(l.Usage, err)
	}
	p, err := billing.ParsePeriod(u.Query(), b.clock)
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.billing().Usage(t.Context(), account, p)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var says struct {
		Requests struct {
			Requests, Refused int64
			Out               int64   `json:"bytes_out"`
			Open              float64 `json:"connection_seconds"`
		}
		Tokens struct {
			Total int64 `json:"total_tokens"`
		}
		Storage struct {
			GBDays int64 `json:"gb_days"`
		}
	}
	if err := json.Unmarshal(raw, &says); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{"requests": says.Requests.Requests - says.Requests.Refused, "tokens": says.Tokens.Total,
		"connection_minutes": int64(math.Ceil(says.Requests.Open / 60)), "bytes_out": says.Requests.Out, "storage_gb_days": says.Storage.GBDays}[l.Metric]
	if got != l.Quantity {
		t.Errorf("%s: %s says %d, the invoice %d", l.Metric, l.Usage, got, l.Quantity)
	}
}

func TestAMonthIsIssuedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all []string
	for range 12 {
		all = append(all, b.account(t, "pro"))
	}
	free := b.account(t, "free")
	late := b.account(t, "pro")
	b.exec(t, `UPDATE accounts SET created_at = '2026-12-01' WHERE id = $1`, late)
	b.clock = issueTime.Add(-time.Second)
	b.issueAll(t, 0)
	b.clock = issueTime
	// Processes die: the connections of those that issue are cut again and again.
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 6 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				_, _ = b.Issue(ctx) // it may be cut anywhere
				cancel()
			}
			return nil
		})
	}
	_ = g.Wait()
	if _, err := b.Issue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.issueAll(t, 0)
	for _, account := range all {
		if bill := b.bill(t, account); bill.Amount != 2900 || len(bill.Lines) != 1 || bill.Collection == nil {
			t.Errorf("%+v", bill)
		}
	}
	for _, account := range []string{free, late} {
		if _, total, err := paging.Rows(b.billing().Page(t.Context(), account, "", paging.Page{Limit: 10})); total != 0 || err != nil {
			t.Errorf("%s has %d invoices, %v", account, total, err)
		}
	}
	var entries int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'invoice.issue'`).Scan(&entries); err != nil || entries != len(all) {
		t.Error(entries, err)
	}
}

func TestWhoLeavesAPlanPaysForItsDays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left, err := accounts.Store{DB: b.db}.Create(t.Context(), "A", "pro")
	if err != nil {
		t.Fatal(err)
	}
	free := "free"
	if _, err := (accounts.Store{DB: b.db}).Update(t.Context(), left.ID, accounts.Change{Plan: &free}); err != nil {
		t.Fatal(err)
	}
	// The change is noted by the database's clock: let the month be that of the change.
	var until time.Time
	if err := b.db.QueryRow(t.Context(), `SELECT until FROM account_plans WHERE account_id = $1 AND plan = 'pro'`, left.ID).Scan(&until); err != nil {
		t.Fatal(err)
	}
	month := monthOf(until.UTC())
	b.exec(t, `UPDATE accounts SET created_at = $2 WHERE id = $1`, left.ID, month)
	b.exec(t, `UPDATE account_plans SET until = $2 WHERE account_id = $1`, left.ID, month.AddDate(0, 0, 10))
	b.clock, b.since = month.AddDate(0, 1, 0).Add(Settle), month
	b.issueAll(t, 1)
	if bill := b.bill(t, left.ID); len(bill.Lines) != 1 || bill.Lines[0].Quantity != 10 || bill.Lines[0].Plan != "pro" {
		t.Errorf("%+v", bill)
	}
}

func TestUpcomingIsADraft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := b.account(t, "pro")
	b.clock, b.since = at("2026-11-10 15:00"), time.Time{}
	b.use(t, account, "2026-11-10 12:00", 1000)
	u, err := b.Upcoming(t.Context(), account)
	if err != nil || u.Status != billing.Draft || u.ID != "" || len(u.Lines) != 4 || u.Lines[0].Quantity != 10 || u.Lines[0].Amount != 967 || u.Lines[1].Included != 100 {
		t.Errorf("%+v %v", u, err)
	}
	if _, total, err := paging.Rows(b.billing().Page(t.Context(), account, "", paging.Page{Limit: 10})); total != 0 || err != nil {
		t.Error("a draft is stored", err)
	}
	if u, err := b.Upcoming(t.Context(), b.account(t, "free")); err != nil || len(u.Lines) != 0 || u.Amount != 0 {
		t.Errorf("%+v %v", u, err)
	}
}

func TestAnInvoiceOfNothingIsPaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prices["pro"] = price.Plan{Currency: "EUR", Units: b.prices["pro"].Units}
	account := b.account(t, "pro")
	b.issueAll(t, 1)
	if bill := b.bill(t, account); bill.Status != billing.Paid || bill.Amount != 0 || bill.Collection.NextAttemptAt != nil {
		t.Errorf("%+v", bill)
	}
}

func TestIssuedNumbersCannotBeImported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := b.account(t, "pro")
	b.issueAll(t, 1)
	bill := b.bill(t, account)
	bill.ID, bill.Amount = "", 1
	if err := b.billing().Import(t.Context(), account, []billing.Invoice{bill.Invoice}); err == nil || !strings.Contains(err.Error(), "number") {
		t.Error(err)
	}
	if b.bill(t, account).Amount != 2900 {
		t.Error("an import has replaced an issued invoice")
	}
}

func TestStorageIsTheMostOfADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := func(id, owner string, size int, complete bool) {
		b.exec(t, `INSERT INTO media_files (id, owner, size, complete, created_at) VALUES ($1, $2, $3, $4, now())`, id, owner, size, complete)
	}
	file("file_1", "acct_1", 5, true)
	file("file_2", "acct_1", 6, true)
	file("file_3", "acct_1", 100, false)
	file("file_4", "pay_0x1", 100, true)
	b.clock = at("2026-11-10 10:00")
	note := func(want string) {
		t.Helper()
		if _, err := b.NoteStorage(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := b.db.QueryRow(t.Context(), `SELECT coalesce(string_agg(account_id || ' ' || day || ' ' || bytes, ', ' ORDER BY day), '') FROM storage_days`).Scan(&got); err != nil || got != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	note("acct_1 2026-11-10 11")
	b.exec(t, `DELETE FROM media_files WHERE id = 'file_1'`)
	note("acct_1 2026-11-10 11")
	b.clock = at("2026-11-11 00:10")
	note("acct_1 2026-11-10 11, acct_1 2026-11-11 6")
	b.exec(t, `DELETE FROM media_files`)
	b.clock = b.clock.Add(keepStorage)
	note("acct_1 2026-11-11 6")
}
