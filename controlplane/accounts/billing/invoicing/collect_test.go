package invoicing

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
)

func (b *bundle) collectAll(t *testing.T, want int) {
	t.Helper()
	if n, err := b.Collect(t.Context()); n != want || err != nil {
		t.Fatalf("%d became paid, want %d: %v", n, want, err)
	}
}

// owing is an account with an open invoice, charged by Stripe.
func (b *bundle) owing(t *testing.T) string {
	t.Helper()
	account := b.account(t, "pro")
	b.issueAll(t, 1)
	return account
}

// paying is an account with an open invoice and a card, pm_one.
func (b *bundle) paying(t *testing.T) (m methods.Store, account string) {
	t.Helper()
	m, account = b.charged(t), b.owing(t)
	if _, err := m.Add(t.Context(), account, "pm_one", false); err != nil {
		t.Fatal(err)
	}
	return m, account
}

func (b *bundle) wantState(t *testing.T, account, status, failure string, attempts int, next *time.Duration) {
	t.Helper()
	bill := b.bill(t, account)
	c := bill.Collection
	if bill.Status != status || c.Failure != failure || c.Attempts != attempts || (c.NextAttemptAt == nil) != (next == nil) || next != nil && c.NextAttemptAt.Sub(b.clock) != *next {
		t.Fatalf("%s, %+v; want %s %q %d %v", bill.Status, *c, status, failure, attempts, next)
	}
}

func after(d time.Duration) *time.Duration { return &d }

func TestAnInvoiceIsChargedToTheDefaultMethod(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.charged(t)
	account := b.owing(t)
	b.collectAll(t, 0)
	b.wantState(t, account, billing.Open, noMethod, 0, nil)
	// It comes due, blocks the account, and a payment method pays it.
	b.clock = b.clock.Add(Terms)
	if n, err := b.billing().Reconcile(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	method, err := m.Add(t.Context(), account, "pm_one", false)
	if err != nil {
		t.Fatal(err)
	}
	b.collectAll(t, 1)
	b.wantState(t, account, billing.Paid, "", 0, nil)
	if b.bill(t, account).Collection.PaymentMethod != method.ID {
		t.Error(b.bill(t, account).Collection)
	}
	if s, err := b.billing().Subscription(t.Context(), account); err != nil || s.Status != "active" {
		t.Errorf("paid, and still %+v %v", s, err)
	}
	b.collectAll(t, 0)
	if b.server.Charges() != 1 {
		t.Errorf("charged %d times", b.server.Charges())
	}
	var entries int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'invoice.collect' AND account_id = $1`, account).Scan(&entries); err != nil || entries != 1 {
		t.Error(entries, err)
	}
}

func TestARefusedChargeIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m, account := b.paying(t)
	const day = 24 * time.Hour
	for attempt := 1; attempt <= MaxAttempts; attempt++ {
		b.server.Fail(stripetest.Fault{Path: "/confirm", Decline: "insufficient_funds"})
		b.collectAll(t, 0)
		b.collectAll(t, 0) // not before its time
		if attempt < MaxAttempts {
			b.wantState(t, account, billing.Open, "insufficient_funds", attempt, after(time.Duration(attempt)*day))
			b.clock = b.clock.Add(time.Duration(attempt) * day)
		}
	}
	b.wantState(t, account, billing.Open, "insufficient_funds", MaxAttempts, nil)
	b.clock = b.clock.Add(365 * day)
	b.collectAll(t, 0)
	if _, err := m.Add(t.Context(), account, "pm_two", true); err != nil {
		t.Fatal(err)
	}
	b.collectAll(t, 1)
	b.wantState(t, account, billing.Paid, "", MaxAttempts, nil)
}

func TestALostAnswerChargesNobodyTwice(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]stripetest.Fault{
		"the payment was prepared":     {Path: "/payment_intents", Status: 500, After: true},
		"the payment was not prepared": {Path: "/payment_intents", Status: 503},
		"it was charged":               {Path: "/confirm", Status: 502, After: true},
		"it was not charged":           {Path: "/confirm", Status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, account := b.paying(t)
			b.server.Fail(fault)
			b.collectAll(t, 0)
			b.wantState(t, account, billing.Open, noAnswer, 0, after(soon))
			b.server.Forget() // it takes days
			b.clock = b.clock.Add(3 * 24 * time.Hour)
			b.collectAll(t, 1)
			b.wantState(t, account, billing.Paid, "", 0, nil)
			if b.server.Charges() != 1 {
				t.Errorf("charged %d times", b.server.Charges())
			}
		})
	}
}

// TestWhoDiesLeavesNothingChargedTwice lets whoever collects do a part and write nothing of it,
// as when it is killed: the claim stays, and the invoice is collected when the lease has passed.
func TestWhoDiesLeavesNothingChargedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.charged(t)
	parts := []func(d due, customer string) error{
		func(due, string) error { return nil },
		func(d due, customer string) error {
			_, err := b.Provider.Prepare(t.Context(), provider.Payment{Customer: customer, Invoice: d.Invoice, Amount: d.Amount, Currency: d.Currency})
			return err
		},
		func(d due, customer string) error { _, err := b.charge(t.Context(), d, customer, "pm_2"); return err },
	}
	for i, die := range parts {
		account := b.account(t, "pro")
		if _, err := m.Add(t.Context(), account, fmt.Sprint("pm_", i), false); err != nil {
			t.Fatal(err)
		}
		b.issueAll(t, 1)
		list, err := b.claim(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		var customer string
		if err := b.db.QueryRow(t.Context(), `SELECT customer FROM billing_customers WHERE account_id = $1`, account).Scan(&customer); err != nil {
			t.Fatal(err)
		}
		if err := die(list[0], customer); err != nil {
			t.Fatal(err)
		}
		b.server.Forget()
		b.collectAll(t, 0) // it is claimed
		b.clock = b.clock.Add(lease)
		b.collectAll(t, 1)
		if b.server.Charges() != i+1 || b.bill(t, account).Status != billing.Paid {
			t.Errorf("part %d: charged %d times, %s", i, b.server.Charges(), b.bill(t, account).Status)
		}
	}
}

func TestManyCollectAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.charged(t)
	const many = 20
	for i := range many {
		account := b.account(t, "pro")
		if _, err := m.Add(t.Context(), account, "pm_"+string(rune('a'+i)), false); err != nil {
			t.Fatal(err)
		}
	}
	b.issueAll(t, many)
	var g errgroup.Group
	results := make([]int, 4)
	for i := range results {
		g.Go(func() (err error) { results[i], err = b.Collect(t.Context()); return err })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if sum := results[0] + results[1] + results[2] + results[3]; sum != many || b.server.Charges() != many {
		t.Errorf("%v became paid, %d charges", results, b.server.Charges())
	}
}

func TestPaymentsThatTakeDaysOrAreCanceled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, account := b.paying(t)
	b.server.Fail(stripetest.Fault{Path: "/confirm", Status: 500})
	b.collectAll(t, 0)
	b.server.SetStatus("processing")
	b.clock = b.clock.Add(soon)
	b.collectAll(t, 0)
	b.wantState(t, account, billing.Open, "", 0, after(settling))
	b.server.SetStatus("canceled")
	b.clock = b.clock.Add(settling)
	b.collectAll(t, 0)
	b.wantState(t, account, billing.Open, wasCanceled, 0, nil)
}

func TestTheLedgerLeavesInvoicesOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := b.owing(t)
	b.collectAll(t, 0)
	b.wantState(t, account, billing.Open, nothingCharged, 0, nil)
	if _, err := b.billing().SetStatus(t.Context(), b.bill(t, account).ID, billing.Paid); err != nil {
		t.Fatal(err)
	}
	b.wantState(t, account, billing.Paid, nothingCharged, 0, nil)
}

func TestWhatTheOperatorSettledIsNotCharged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, account := b.paying(t)
	if _, err := b.billing().SetStatus(t.Context(), b.bill(t, account).ID, billing.Void); err != nil {
		t.Fatal(err)
	}
	b.collectAll(t, 0)
	if b.server.Charges() != 0 || b.bill(t, account).Status != billing.Void {
		t.Error(b.server.Charges(), b.bill(t, account).Status)
	}
}
