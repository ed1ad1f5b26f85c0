package main

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/bench/chaos/audit"
)

// books reads what is stored, straight from the database.
type books struct{ url string }

// with runs f on a connection of its own.
func (b books) with(ctx context.Context, f func(*pgx.Conn) error) error {
	db, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	return f(db)
}

// rows reads all rows of a query as T, whose fields are in the order of columns.
func rows[T any](ctx context.Context, db *pgx.Conn, sql string) ([]T, error) {
	r, err := db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, pgx.RowToStructByPos[T])
}

// stored is all that the accountant compares.
func (b books) stored(ctx context.Context) (s audit.Stored, err error) {
	err = b.with(ctx, func(db *pgx.Conn) error {
		if s.Things, err = rows[audit.Thing](ctx, db, `SELECT 'stream', title, id FROM media_streams UNION ALL SELECT 'schedule', name, id FROM schedules
			UNION ALL SELECT 'key', name, id FROM api_keys UNION ALL SELECT 'subscription', description, id FROM webhook_subscriptions`); err != nil {
			return err
		}
		if s.Executions, err = rows[audit.Execution](ctx, db, `SELECT id, schedule_id, coalesce(scheduled_for, executed_at), status, coalesce(logs[cardinality(logs)], '')
			FROM schedule_executions`); err != nil {
			return err
		}
		if s.Payments, err = rows[audit.Settled](ctx, db, `SELECT b.address, count(p.id)::int, coalesce(min(p.state), ''),
			(SELECT count(*) FROM media_assets a WHERE a.kind = 'clip' AND a.owner = 'pay_' || b.address)::int, b.amount, b.held
			FROM x402_balances b LEFT JOIN x402_payments p ON p.payer = b.address GROUP BY b.address, b.amount, b.held`); err != nil {
			return err
		}
		return b.sums(ctx, db, &s)
	})
	return s, err
}

// sums reads events, usage, tokens and versions.
func (b books) sums(ctx context.Context, db *pgx.Conn, s *audit.Stored) error {
	type event struct {
		ID, Type, Stream string
		At               time.Time
		Body             []byte
	}
	events, err := rows[event](ctx, db, `SELECT id, type, coalesce(stream_id, ''), created_at, body FROM account_events WHERE type LIKE 'stream.%'`)
	if err != nil {
		return err
	}
	for _, e := range events {
		s.Events = append(s.Events, audit.Event{ID: e.ID, Type: e.Type, Stream: e.Stream, At: e.At, Body: sha256.Sum256(e.Body)})
	}
	type used struct {
		Key string
		N   int64
	}
	usage, err := rows[used](ctx, db, `SELECT key_id, sum(requests)::bigint FROM usage_counts WHERE grain = 0 AND route = 'streams.list' AND class BETWEEN 1 AND 4 GROUP BY 1`)
	if err != nil {
		return err
	}
	s.Usage = map[string]int64{}
	for _, u := range usage {
		s.Usage[u.Key] = u.N
	}
	s.Configs = map[int64]bool{}
	versions, err := rows[struct{ N int64 }](ctx, db, `SELECT version FROM config_versions`)
	if err != nil {
		return err
	}
	for _, v := range versions {
		s.Configs[v.N] = true
	}
	return db.QueryRow(ctx, `SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint FROM token_usage`).Scan(&s.Tokens)
}

// waiting counts what is not over yet. What is due once a minute never is.
type waiting struct{ deliveries, runs, payments int }

func (b books) waiting(ctx context.Context) (w waiting, err error) {
	err = b.with(ctx, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `SELECT (SELECT count(*) FROM webhook_deliveries WHERE status IN ('pending', 'held')),
			(SELECT count(*) FROM schedule_executions WHERE status IN ('waiting', 'executing')) +
				(SELECT count(*) FROM schedules WHERE next_fire_at < now() + interval '20 seconds' AND status = 'active' AND definition->'schedule'->>'type' = 'one_time'),
			(SELECT count(*) FROM x402_payments WHERE ended_at IS NULL)`).Scan(&w.deliveries, &w.runs, &w.payments)
	})
	return w, err
}

// delayed are the deliveries that wait for a retry, by subscription.
func (b books) delayed(ctx context.Context) (all []delayed, err error) {
	err = b.with(ctx, func(db *pgx.Conn) error {
		all, err = rows[delayed](ctx, db, `SELECT subscription_id, id FROM webhook_deliveries WHERE status = 'failed' OR (status = 'pending' AND next_attempt_at > now() + interval '2 seconds')`)
		return err
	})
	return all, err
}

type delayed struct {
	Subscription string
	ID           int64
}

// usage is the sum of all counts, by which one sees that they have come to rest.
func (b books) usage(ctx context.Context) (n int64, err error) {
	err = b.with(ctx, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `SELECT coalesce(sum(requests), 0)::bigint FROM usage_counts WHERE grain = 0`).Scan(&n)
	})
	return n, err
}

// lateness is what actors.Lateness asks for. Only runs that are due once count: what
// is due once a minute has none within a short time.
func (b books) lateness(ctx context.Context, account string, since time.Time) (due map[string]time.Time, webhooks []time.Duration, err error) {
	due = map[string]time.Time{}
	err = b.with(ctx, func(db *pgx.Conn) error {
		var id string
		var at time.Time
		rows, err := db.Query(ctx, `SELECT e.id, e.scheduled_for FROM schedule_executions e JOIN schedules s ON s.id = e.schedule_id
			WHERE s.account_id = $1 AND s.definition->'schedule'->>'type' = 'one_time' AND e.scheduled_for >= $2`, account, since)
		if err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { due[id] = at; return nil }); err != nil {
			return err
		}
		var late float64
		rows, err = db.Query(ctx, `SELECT extract(epoch FROM a.started_at - d.created_at)::float8 FROM webhook_deliveries d
			JOIN webhook_attempts a ON a.delivery_id = d.id AND a.number = 1 JOIN webhook_subscriptions s ON s.id = d.subscription_id
			WHERE s.account_id = $1 AND d.created_at >= $2`, account, since)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&late}, func() error {
			webhooks = append(webhooks, time.Duration(late*float64(time.Second)))
			return nil
		})
		return err
	})
	return due, webhooks, err
}
