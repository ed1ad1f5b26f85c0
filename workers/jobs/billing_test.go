package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/jobs"
)

// as opens a database with what a kind of process may do.
func as(t *testing.T, url string, r migrations.Role) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE "+pgx.Identifier{string(r)}.Sanitize())
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestTheLeaderHasInvoicesIssuedAndCollected has a worker and a control plane do their parts,
// each with the rights of its database role.
func TestTheLeaderHasInvoicesIssuedAndCollected(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	worker, plane := as(t, url, migrations.Worker), as(t, url, migrations.ControlPlane)
	stripe := stripetest.New(t).Client()
	a, err := accounts.Store{DB: plane}.Create(t.Context(), "A", "pro")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (methods.Store{DB: plane, Provider: stripe}).Add(t.Context(), a.ID, "pm_1", false); err != nil {
		t.Fatal(err)
	}
	free := "free"
	if _, err := (accounts.Store{DB: plane}).Update(t.Context(), a.ID, accounts.Change{Plan: &free}); err != nil {
		t.Fatal(err)
	}
	var rounds atomic.Int32 // that there were: each is an hour after the one before
	later := func() time.Time {
		return time.Now().AddDate(0, 2, 0).Add(time.Duration(rounds.Load()) * time.Hour)
	}
	store := invoicing.Store{DB: worker, Provider: stripe, Now: later, Prices: func(context.Context, time.Time) (invoicing.Prices, error) {
		all := price.Plan{Currency: "EUR", Monthly: 3000}
		return invoicing.Prices{Version: 1, Plans: map[string]price.Plan{"pro": all, "free": all}}, nil
	}}
	work := river.NewWorkers()
	jobs.AddBilling(work, store)
	client, err := river.NewClient(riverpgxv5.New(worker), &river.Config{Workers: work, Queues: jobs.BillingQueues(), PeriodicJobs: jobs.BillingRounds(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer cancel()
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A round does in its time what it can, and the next one the rest: on a busy machine
	// that may be all of it.
	var list []billing.Invoice
	total := 0
	for kinds := map[string]bool{}; total == 0 || len(kinds) < 2; {
		e := <-done
		if e.Kind != river.EventKindJobCompleted {
			t.Fatalf("%s: %+v", e.Job.Kind, e.Job.Errors)
		}
		kinds[e.Job.Kind] = true
		if e.Job.Kind != (jobs.InvoicesArgs{}).Kind() {
			continue
		}
		if list, total, err = paging.Rows((billing.Store{DB: plane}).Page(t.Context(), a.ID, billing.Paid, paging.Page{Limit: 10})); err != nil {
			t.Fatal(err)
		}
		if total > 0 {
			continue
		}
		if rounds.Add(1) > 20 {
			all, _, err := paging.Rows(billing.Store{DB: plane}.Page(t.Context(), a.ID, "", paging.Page{Limit: 10}))
			t.Fatalf("after 20 rounds nothing is paid of %+v (%v)", all, err)
		}
		if _, err := client.Insert(t.Context(), jobs.InvoicesArgs{}, &river.InsertOpts{Queue: "billing"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		b, err := billing.Store{DB: plane}.Bill(t.Context(), a.ID, i.ID)
		if err != nil || len(b.Lines) == 0 || b.Collection == nil || b.Collection.PaymentMethod == "" {
			t.Errorf("%+v %v", b, err)
		}
	}
	if u, err := (invoicing.Store{DB: plane, Prices: store.Prices}).Upcoming(t.Context(), a.ID); err != nil || len(u.Lines) == 0 {
		t.Errorf("%+v %v", u, err)
	}
}
