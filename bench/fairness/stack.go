package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/e2e/harness"
	"sluice.dev/sluice/workers/schedules/definition"
)

// bed is a local stack, a look into its database, and a receiver that answers.
type bed struct {
	*harness.Stack
	pool     *pgxpool.Pool
	receiver *httptest.Server
	hook     string // the neighbour's subscription
}

func start(ctx context.Context) (*bed, error) {
	stack, err := harness.NewStack(map[string]string{"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32"})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack, receiver: httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
	if err = b.Up(); err == nil {
		b.pool, err = pgxpool.New(ctx, b.Env["SLUICE_DATABASE_URL"])
	}
	if err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *bed) stop() {
	if b.pool != nil {
		b.pool.Close()
	}
	b.receiver.Close()
	b.Close()
}

// ask makes a request and reads the answer into out, which may be nil.
func (b *bed) ask(ctx context.Context, url, key, once string, in, out any) error {
	var headers []string
	if once != "" {
		headers = []string{"Idempotency-Key", once}
	}
	a, err := harness.Ask(ctx, http.DefaultClient, http.MethodPost, url, key, in, headers...)
	if err != nil {
		return err
	}
	return a.Into(out)
}

// prepare lets the neighbour hear of its runs, and waits until its key is served.
func (b *bed) prepare(ctx context.Context) error {
	var made struct{ ID string }
	err := harness.Until(func() error {
		return b.ask(ctx, b.Dev["SLUICE_GATEWAY_URL"]+"/v1/webhooks", b.Dev["SLUICE_API_KEY"], "the neighbour's",
			map[string]any{"url": b.receiver.URL, "events": []string{"schedule.executed"}, "secret": "a secret of the benchmark"}, &made)
	})
	b.hook = made.ID
	return err
}

// tenant makes a second account and returns a key of it, which edges know.
func (b *bed) tenant(ctx context.Context, plan string) (key, account string, err error) {
	admin := b.Dev["SLUICE_ADMIN_URL"] + "/admin/v1/accounts"
	var made struct{ ID, Key string }
	if err := b.ask(ctx, admin, b.Dev["SLUICE_ADMIN_KEY"], "", map[string]string{"name": "Hostile", "plan": plan}, &made); err != nil {
		return "", "", err
	}
	account = made.ID
	err = b.ask(ctx, admin+"/"+account+"/keys", b.Dev["SLUICE_ADMIN_KEY"], "", map[string]any{"name": "hostile", "scopes": []string{"*"}}, &made)
	if err != nil {
		return "", "", err
	}
	err = harness.Until(func() error { // until the edge has it
		return b.ask(ctx, b.Dev["SLUICE_GATEWAY_URL"]+"/v1/events/schedules/preview", made.Key, "", map[string]any{"cron": "* * * * *", "timezone": "UTC"}, nil)
	})
	return made.Key, account, err
}

// plan stores schedules of an account that are due once each, so many a second from
// then on, at url; none: they emit an event.
func (b *bed) plan(ctx context.Context, account, name, url string, rate int, from time.Time, span time.Duration) error {
	n := int(span.Seconds() * float64(rate))
	retries, delay, factor := 10, 1, 1.0
	now := time.Now()
	row := func(i int) ([]any, error) {
		at := from.Add(time.Second / time.Duration(rate) * time.Duration(i)).UTC().Truncate(time.Microsecond)
		d := definition.Definition{Name: fmt.Sprint(name, i), Type: definition.TypeCustom, Tags: []string{}, CatchUpPolicy: "last", MaxCatchUp: 10, OverlapPolicy: "allow",
			Schedule: definition.Timing{Type: definition.OneTime, Timezone: "UTC", ExecuteAt: at.Format(time.RFC3339Nano)}}
		if url != "" {
			d.Type = definition.TypeWebhook
			d.Webhook = &definition.Webhook{URL: url, Payload: []byte(`{}`), RetryPolicy: &definition.RetryPolicy{MaxRetries: &retries, InitialDelaySeconds: &delay, BackoffMultiplier: &factor}}
		}
		return []any{fmt.Sprintf("schedule_%s%06d", name, i), account, d.Name, d.Type, d.Tags, "active", d, at, now, now}, nil
	}
	columns := []string{"id", "account_id", "name", "type", "tags", "status", "definition", "next_fire_at", "created_at", "updated_at"}
	_, err := b.pool.CopyFrom(ctx, pgx.Identifier{"schedules"}, columns, pgx.CopyFromSlice(n, row))
	return err
}

// flood has the hostile tenant's runs due: those that call, and those whose event
// goes to each of its subscriptions.
func (b *bed) flood(ctx context.Context, account, silent string, o options) error {
	from, span := time.Now().Add(time.Second), warmUp+o.length
	if err := b.plan(ctx, account, "flood", silent, o.rate*o.times, from, span); err != nil {
		return err
	}
	return b.plan(ctx, account, "event", "", o.rate, from, span)
}
