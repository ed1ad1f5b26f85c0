// Package webhooktest sets the webhook service up for tests: a database, an
// account, a receiver.
package webhooktest

import (
	"cmp"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/webhooks"
)

// Names that tests use.
const (
	Account = "acct_0000000000001"
	Other   = "acct_0000000000002"
	Secret  = "a secret of sixteen bytes"
)

// Bundle is a service on a database of its own.
type Bundle struct {
	T       testing.TB
	Pool    *pgxpool.Pool
	Service *webhooks.Service
	Client  *outbound.Client
}

// New makes a bundle; now is the service's clock, nil: time.Now. Receivers on
// loopback addresses are allowed.
func New(t testing.TB, now func() time.Time) *Bundle {
	t.Helper()
	return Over(t, pgtest.Pool(t), now)
}

// Over is New over a pool that the caller has made.
func Over(t testing.TB, pool *pgxpool.Pool, now func() time.Time) *Bundle {
	t.Helper()
	_, err := pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'one', 'local'), ($2, 'two', 'local')`, Account, Other)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxIdlePerHost: 64})
	t.Cleanup(client.CloseIdle)
	s := webhooks.New(webhooks.Config{DB: pool, Jobs: jobs, Box: box, Client: client, Now: now})
	return &Bundle{t, pool, s, client}
}

// Subscribe makes a subscription of Account to everything, changed by in.
func (b *Bundle) Subscribe(url string, in webhooks.Create) webhooks.Subscription {
	b.T.Helper()
	in.URL, in.Secret = url, cmp.Or(in.Secret, Secret)
	if in.Events == nil {
		in.Events = []string{"*"}
	}
	s, err := b.Service.Create(b.T.Context(), Account, in)
	if err != nil {
		b.T.Fatal(err)
	}
	return s
}

// Emit stores e for Account, of type stream.started unless it says otherwise.
func (b *Bundle) Emit(e events.Event) {
	b.T.Helper()
	e.Account, e.Type = cmp.Or(e.Account, Account), cmp.Or(e.Type, "stream.started")
	err := pgx.BeginFunc(b.T.Context(), b.Pool, func(tx pgx.Tx) error { return b.Service.EmitTx(b.T.Context(), tx, e) })
	if err != nil {
		b.T.Fatal(err)
	}
}

// EmitMany stores n events for Account in one transaction.
func (b *Bundle) EmitMany(n int) {
	b.T.Helper()
	err := pgx.BeginFunc(b.T.Context(), b.Pool, func(tx pgx.Tx) error {
		for range n {
			if err := b.Service.EmitTx(b.T.Context(), tx, events.Event{Account: Account, Type: "stream.started"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.T.Fatal(err)
	}
}

// Events returns the types of an account's events, oldest first.
func (b *Bundle) Events(account string) []string {
	b.T.Helper()
	rows, _ := b.Pool.Query(b.T.Context(), `SELECT type FROM account_events WHERE account_id = $1 ORDER BY seq`, account)
	types, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.T.Fatal(err)
	}
	return types
}

// Jobs returns the delivery jobs that are not finished, by when they are due.
func (b *Bundle) Jobs() []Job {
	b.T.Helper()
	rows, _ := b.Pool.Query(b.T.Context(), `SELECT id, queue, scheduled_at, (args->>'d')::bigint, (args->>'g')::integer, args->>'s'
		FROM river_job WHERE kind = 'webhook_delivery' AND finalized_at IS NULL ORDER BY scheduled_at, id`)
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j Job, err error) {
		err = row.Scan(&j.ID, &j.Queue, &j.At, &j.Args.Delivery, &j.Args.Generation, &j.Args.Subscription)
		return j, err
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return jobs
}

// Take removes a job, as a worker does that has run it.
func (b *Bundle) Take(j Job) webhooks.DeliveryArgs {
	b.T.Helper()
	if _, err := b.Pool.Exec(b.T.Context(), `DELETE FROM river_job WHERE id = $1`, j.ID); err != nil {
		b.T.Fatal(err)
	}
	return j.Args
}

// Job is a delivery's job as it stands in the queue.
type Job struct {
	ID    int64
	Queue string
	At    time.Time
	Args  webhooks.DeliveryArgs
}
