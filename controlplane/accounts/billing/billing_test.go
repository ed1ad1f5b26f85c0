package billing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type bundle struct {
	db      *pgxpool.Pool
	store   Store
	account string
	tag     keytable.Tag // of a key of the account
	now     time.Time
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.Pool(t), now: start}
	b.store = Store{DB: b.db, Now: func() time.Time { return b.now }}
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "A", "free")
	if err != nil {
		t.Fatal(err)
	}
	b.account = a.ID
	k, err := apikeys.Store{DB: b.db}.Create(t.Context(), apikeys.Spec{Account: a.ID, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	b.tag = keytable.TagOfKey(apikey.Hash(k.Text))
	return b
}

// atEdge is what edges know about the account's key.
func (b *bundle) atEdge(t *testing.T) keytable.Record {
	t.Helper()
	var raw []byte
	if err := b.db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, b.tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	r, _ := keytable.Decode(raw)
	return r
}

func (b *bundle) blocked(t *testing.T) bool {
	t.Helper()
	return b.atEdge(t).Flags&keytable.FlagUnpaid != 0
}

func day(s string) Date {
	d, err := ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func invoice(number, status string, due time.Time) Invoice {
	return Invoice{Number: number, Status: status, Currency: "EUR", Amount: 4900, PeriodStart: day("2026-10-01"), PeriodEnd: day("2026-10-31"),
		IssuedAt: start.AddDate(0, 0, -20), DueAt: due}
}

func (b *bundle) load(t *testing.T, list ...Invoice) {
	t.Helper()
	if err := b.store.Import(t.Context(), b.account, list); err != nil {
		t.Fatal(err)
	}
}

func TestAnOverdueInvoiceBlocksUntilItIsPaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.load(t, invoice("1", Open, start.Add(time.Hour)), invoice("2", Paid, start.Add(-time.Hour)))
	if b.blocked(t) {
		t.Fatal("blocked before anything is due")
	}
	b.now = start.Add(time.Hour)
	if n, err := b.store.Reconcile(t.Context()); n != 1 || err != nil || !b.blocked(t) {
		t.Fatalf("when it is due: %d %v", n, err)
	}
	if n, err := b.store.Reconcile(t.Context()); n != 0 || err != nil {
		t.Fatalf("again: %d %v", n, err)
	}
	if s, err := b.store.Subscription(t.Context(), b.account); err != nil || s != (Subscription{"free", "unpaid"}) {
		t.Fatalf("%+v %v", s, err)
	}
	list, _, err := paging.Rows(b.store.Page(t.Context(), b.account, Open, paging.Page{Limit: 10}))
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if i, err := b.store.SetStatus(t.Context(), list[0].ID, Paid); err != nil || i.Status != Paid || b.blocked(t) {
		t.Fatalf("after the payment: %+v %v", i, err)
	}
}

func TestAnImportReplacesByNumberAndBlocksAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late := invoice("1", Open, start.Add(-time.Hour))
	b.load(t, late)
	if !b.blocked(t) {
		t.Fatal("an overdue invoice was imported, and nobody is blocked")
	}
	late.Status = Void
	b.load(t, late, invoice("2", Open, start.Add(time.Hour)))
	list, total, err := paging.Rows(b.store.Page(t.Context(), b.account, "", paging.Page{Limit: 10}))
	if err != nil || total != 2 || b.blocked(t) {
		t.Fatalf("%+v %v", list, err)
	}
	late.ID = list[0].ID
	if list[0].Number == "2" {
		late.ID = list[1].ID
		list[0] = list[1]
	}
	if diff := cmp.Diff(late, list[0]); diff != "" {
		t.Error(diff)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := invoice("1", Open, start)
	bad := Invoice{ID: "x", Number: "ä", Status: "late", Currency: "euro", Amount: -1, PeriodStart: day("2026-10-02"), PeriodEnd: day("2026-10-01")}
	for name, c := range map[string]struct {
		account string
		list    []Invoice
		want    decision.Code
		details int
	}{
		"everything wrong": {b.account, []Invoice{good, bad}, decision.InvalidRequest, 8},
		"nothing":          {b.account, nil, decision.InvalidRequest, 1},
		"too many":         {b.account, make([]Invoice, MaxImport+1), decision.InvalidRequest, 1},
		"nobody's":         {"acct_0000000000000", []Invoice{good}, decision.NotFound, 0},
	} {
		err := b.store.Import(t.Context(), c.account, c.list)
		if apierror.Code(err) != c.want || details(err) != c.details {
			t.Errorf("%s: %.200v, %d details", name, err, details(err))
		}
	}
	if _, total, err := paging.Rows(b.store.Page(t.Context(), b.account, "", paging.Page{Limit: 1})); total != 0 || err != nil {
		t.Errorf("a part of a bad import was kept: %d %v", total, err)
	}
	if _, err := b.store.SetStatus(t.Context(), "inv_0", Paid); apierror.Code(err) != decision.NotFound {
		t.Errorf("an unknown invoice: %v", err)
	}
	if _, err := b.store.SetStatus(t.Context(), "inv_0", "late"); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("an unknown status: %v", err)
	}
}

func TestOnlyPlansOnOfferCanBeTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.Subscribe(t.Context(), b.account, "enterprise"); apierror.Code(err) != decision.InvalidRequest {
		t.Fatal(err)
	}
	if err := b.store.SetSelfServe(t.Context(), Plan{"enterprise", true}); err != nil {
		t.Fatal(err)
	}
	before := b.atEdge(t).Plan
	if s, err := b.store.Subscribe(t.Context(), b.account, "enterprise"); err != nil || s.Plan != "enterprise" || b.atEdge(t).Plan == before {
		t.Fatalf("%+v %v", s, err)
	}
	if err := b.store.SetSelfServe(t.Context(), Plan{"gold", true}); apierror.Code(err) != decision.NotFound {
		t.Fatal(err)
	}
	if list, err := b.store.Plans(t.Context()); err != nil || list[0] != (Plan{"enterprise", true}) || list[2] != (Plan{"local", false}) {
		t.Fatalf("%+v %v", list, err)
	}
}

func TestUsageSumsWhatWasMetered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, d := range []string{"2026-10-31", "2026-11-01", "2026-11-01", "2026-11-21", "2026-11-22"} {
		_, err := b.db.Exec(t.Context(), `INSERT INTO token_usage (account_id, credential_id, day, model, requests, prompt_tokens, completion_tokens, estimated_tokens)
			VALUES ($1, $2, $3, 'm', 1, 10, 100, 0)`, b.account, fmt.Sprint("key", i), d)
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := ParsePeriod(url.Values{}, start)
	if err != nil {
		t.Fatal(err)
	}
	u, err := b.store.Usage(t.Context(), b.account, p)
	limit := int64(2_000_000)
	want := Usage{Period: Period{day("2026-11-01"), day("2026-11-21")}, Plan: "free", Tokens: Tokens{3, 30, 300, 330}, Limit: &limit,
		Data:  []DayTokens{{day("2026-11-01"), "m", Tokens{2, 20, 200, 220}}, {day("2026-11-21"), "m", Tokens{1, 10, 100, 110}}},
		Month: usage.Month{Start: "2026-11-01"}}
	if diff := cmp.Diff(want, u); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	for query, bad := range map[string]int{
		"": 0, "from=2026-11-21&to=2026-11-21": 0, "from=2025-11-21&to=2026-11-21": 0, "from=2025-11-20&to=2026-11-21": 1,
		"from=2026-11-22&to=2026-11-21": 1, "from=yesterday&to=2026-13-01": 2, "to=1999-01-01": 1, "from=2027-01-01": 1,
	} {
		q, _ := url.ParseQuery(query)
		_, err := ParsePeriod(q, start)
		e, _ := errors.AsType[*apierror.Error](err)
		if e == nil && bad > 0 || e != nil && len(e.Details) != bad {
			t.Errorf("%q: %v, want %d faults", query, err, bad)
		}
	}
}

func FuzzParsePeriod(f *testing.F) {
	f.Add("from=2026-11-01&to=2026-11-21")
	f.Add("to=9999-99-99")
	f.Fuzz(func(t *testing.T, s string) {
		q, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		p, err := ParsePeriod(q, start)
		if days := p.End.Sub(p.Start.Time).Hours() / 24; err == nil && (days < 0 || days >= MaxDays) {
			t.Fatalf("%q: %v days", s, days)
		}
	})
}

func FuzzDate(f *testing.F) {
	f.Add(`"2026-11-21"`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, s string) {
		var d Date
		if d.UnmarshalJSON([]byte(s)) != nil {
			return
		}
		b, err := d.MarshalJSON()
		var again Date
		if err != nil || again.UnmarshalJSON(b) != nil || !again.Equal(d.Time) || strings.Contains(string(b), "T") {
			t.Fatalf("%s became %s", s, b)
		}
	})
}

// Invoices are imported, paid and voided by many at once, while the clock says
// that they are due. In the end the account's state is what its invoices say,
// and what edges hold.
func TestTheStateFollowsTheInvoices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var g errgroup.Group
	for w := range 6 {
		rng := rand.New(rand.NewPCG(5, uint64(w)))
		g.Go(func() error {
			for range 15 {
				status := []string{Open, Paid, Void}[rng.IntN(3)]
				i := invoice(fmt.Sprint(rng.IntN(4)), status, start.Add(time.Duration(rng.IntN(3)-1)*time.Hour))
				if err := b.store.Import(t.Context(), b.account, []Invoice{i}); err != nil {
					return err
				}
				list, _, err := paging.Rows(b.store.Page(t.Context(), b.account, Open, paging.Page{Limit: 1}))
				if err == nil && len(list) > 0 {
					_, err = b.store.SetStatus(t.Context(), list[0].ID, Paid)
				}
				if err == nil {
					_, err = b.store.Reconcile(t.Context())
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	list, _, err := paging.Rows(b.store.Page(t.Context(), b.account, Open, paging.Page{Limit: 10}))
	if err != nil {
		t.Fatal(err)
	}
	overdue := false
	for _, i := range list {
		overdue = overdue || !i.DueAt.After(b.now)
	}
	if s, err := b.store.Subscription(t.Context(), b.account); err != nil || (s.Status == "unpaid") != overdue || b.blocked(t) != overdue {
		t.Fatalf("%+v, at the edge %v, want %v: %v", s, b.blocked(t), overdue, err)
	}
}

// details is how many fields err names.
func details(err error) int {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return 0
	}
	return len(e.Details)
}
