package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Jobs measures the jobs that a River client works off, and has what they log
// name them; it is one of its middlewares.
type Jobs struct {
	river.MiddlewareDefaults
	duration *prometheus.HistogramVec
}

// NewJobs registers the metrics with r.
func NewJobs(r prometheus.Registerer) *Jobs {
	j := &Jobs{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_job_duration_seconds", Help: "How long jobs took, by kind and what came of them.",
		Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30},
	}, []string{"kind", "outcome"})}
	r.MustRegister(j.duration)
	return j
}

// Work implements rivertype.WorkerMiddleware.
func (j *Jobs) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	start := time.Now()
	err := do(WithLog(ctx, slog.String("job", job.Kind), slog.Int64("job_id", job.ID)))
	j.duration.WithLabelValues(job.Kind, outcome(err)).Observe(time.Since(start).Seconds())
	return err
}

// outcome says what River makes of what a worker returns.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, &river.JobSnoozeError{}):
		return "snoozed"
	case errors.Is(err, &river.JobCancelError{}):
		return "cancelled"
	}
	return "failed"
}

// countTimeout bounds the query of a scrape.
const countTimeout = 3 * time.Second

// Backlog counts the jobs that wait, by queue, when it is scraped. A scrape while
// Postgres is away lacks it.
type Backlog struct {
	db   postgres.DB
	desc *prometheus.Desc
}

// NewBacklog returns a collector over River's tables in db.
func NewBacklog(db postgres.DB) *Backlog {
	return &Backlog{db: db, desc: prometheus.NewDesc("sluice_jobs_waiting", "Jobs that could be worked on now, by queue.", []string{"queue"}, nil)}
}

// Describe implements prometheus.Collector.
func (b *Backlog) Describe(out chan<- *prometheus.Desc) { out <- b.desc }

// Collect implements prometheus.Collector.
func (b *Backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	// Jobs that are due later wait for their time and not for a worker.
	rows, _ := b.db.Query(ctx, `SELECT queue, count(*) FROM river_job WHERE state = 'available' AND scheduled_at <= now() GROUP BY queue`)
	var queue string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&queue, &n}, func() error {
		out <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, float64(n), queue)
		return nil
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(b.desc, err)
	}
}
