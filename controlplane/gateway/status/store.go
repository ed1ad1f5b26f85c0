package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Store reads the state of the platform.
type Store struct {
	DB postgres.DB
}

// Routes mounts, relative to r, GET status.
func (s Store) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/status", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (Report, error) {
		return s.Read(r.Context())
	}))
}

// Read returns the report with what is wrong.
func (s Store) Read(ctx context.Context) (r Report, err error) {
	for _, read := range []func(context.Context, *Report) error{s.database, s.processes, s.edges, s.queues, s.schedules, s.webhooks, s.failed, s.usage} {
		if err := read(ctx, &r); err != nil {
			return r, fmt.Errorf("read the status: %w", err)
		}
	}
	r.Problems, r.Status = FindProblems(r), OK
	if len(r.Problems) > 0 {
		r.Status = Problems
	}
	return r, nil
}

func (s Store) database(ctx context.Context, r *Report) error {
	newest, err := migrations.Newest()
	if err != nil {
		return err
	}
	d := &r.Database
	d.SchemaNewest = int64(newest)
	began := time.Now()
	if err := s.DB.QueryRow(ctx, `SELECT now()`).Scan(&r.Time); err != nil {
		return err
	}
	d.LatencyMS = float64(time.Since(began).Microseconds()) / 1000
	return s.DB.QueryRow(ctx, `
		SELECT current_setting('server_version'), pg_database_size(current_database()),
			(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::int,
			(SELECT max(version) FROM schema_migrations)`,
	).Scan(&d.Version, &d.Bytes, &d.Connections, &d.ConnectionsMax, &d.Schema)
}

func (s Store) processes(ctx context.Context, r *Report) (err error) {
	rows, _ := s.DB.Query(ctx, `
		SELECT name, kind, build, last_seen > now() - $1::interval, started_at, last_seen FROM processes ORDER BY kind, name`, LiveFor)
	r.Processes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Process])
	return err
}

func (s Store) edges(ctx context.Context, r *Report) (err error) {
	r.Edges, err = edgestatus.Store{DB: s.DB}.View(ctx)
	return err
}

func (s Store) queues(ctx context.Context, r *Report) (err error) {
	rows, _ := s.DB.Query(ctx, `
		SELECT queue, count(*), extract(epoch FROM now() - min(scheduled_at))::float8 FROM river_job
		WHERE state = 'available' AND scheduled_at <= now() GROUP BY queue ORDER BY queue`)
	r.Queues, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Queue])
	return err
}

func (s Store) schedules(ctx context.Context, r *Report) error {
	return s.DB.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE next_fire_at < now() - $1::interval),
			coalesce(extract(epoch FROM now() - min(next_fire_at) FILTER (WHERE next_fire_at < now() - $1::interval)), 0)::float8
		FROM schedules WHERE status = 'active'`, lateAfter).Scan(&r.Schedules.Active, &r.Schedules.Late, &r.Schedules.Latest)
}

func (s Store) webhooks(ctx context.Context, r *Report) error {
	w := &r.Webhooks
	return s.DB.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status = 'active' AND failing_since IS NOT NULL),
			count(*) FILTER (WHERE status = 'disabled')
		FROM webhook_subscriptions`).Scan(&w.Endpoints, &w.Failing, &w.Disabled)
}

// cancelled is the SQLSTATE of a statement that took too long.
const cancelled = "57014"

// failed counts the deliveries that were given up. There is no index by time: where
// very many have failed, the question is dropped.
func (s Store) failed(ctx context.Context, r *Report) error {
	var n int64
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '2s'`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT count(*) FROM webhook_deliveries WHERE status = 'failed' AND finished_at > now() - interval '1 hour'`).Scan(&n)
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == cancelled {
		return nil
	}
	r.Webhooks.Failed = &n
	return err
}

func (s Store) usage(ctx context.Context, r *Report) error {
	return s.DB.QueryRow(ctx, `SELECT (SELECT max(seen_at) FROM usage_sources), hours FROM usage_progress`).Scan(&r.Usage.LastParcel, &r.Usage.SummedTo)
}
