package delivery

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/workers/webhooks"
)

// What the queue's own client does not offer is done here on its table, always
// in a way that its own maintenance also does: setting the queue of a job that
// this process is running, and making a job available again.

// Divert moves a job that is being run into the queue of slow endpoints. The
// worker must then snooze it.
func (d *Deliverer) Divert(ctx context.Context, job int64) error {
	d.metrics.diverted.Inc()
	_, err := d.moving.Call(ctx, job)
	return err
}

// divertAll is one statement for many jobs. A job that is not running any more
// was taken from this process, and is left as it is.
func (d *Deliverer) divertAll(ctx context.Context, jobs []int64) ([]struct{}, error) {
	_, err := d.DB.Exec(ctx, `UPDATE river_job SET queue = $2 WHERE id = ANY ($1) AND state = 'running'`, jobs, webhooks.QueueSlow)
	if err != nil {
		return nil, fmt.Errorf("divert jobs: %w", err)
	}
	return make([]struct{}, len(jobs)), nil
}

// Behind puts a job that is being run behind those of others in its queue. The
// worker must then snooze it.
func (d *Deliverer) Behind(ctx context.Context, job int64) error {
	_, err := d.behind.Call(ctx, job)
	return err
}

// behindAll is one statement for many jobs, as divertAll.
func (d *Deliverer) behindAll(ctx context.Context, jobs []int64) ([]struct{}, error) {
	_, err := d.DB.Exec(ctx, `UPDATE river_job SET priority = $2 WHERE id = ANY ($1) AND state = 'running'`, jobs, webhooks.Behind)
	if err != nil {
		return nil, fmt.Errorf("put jobs behind others: %w", err)
	}
	return make([]struct{}, len(jobs)), nil
}

// queues are those that Revive looks after.
var queues = []string{webhooks.QueueFirst, webhooks.QueueRetry, webhooks.QueueSlow, webhooks.QueueBackground}

// Revive makes jobs available that a crash has left behind: those that have
// been running for longer than stuckAfter, which must be more than any job may
// take, and those that are due while no process leads the queue's maintenance.
// It returns how many there were. The queue would do both by itself, later.
func (d *Deliverer) Revive(ctx context.Context, stuckAfter time.Duration) (int, error) {
	tag, err := d.DB.Exec(ctx, `
		UPDATE river_job SET state = 'available' WHERE id IN (
			SELECT id FROM river_job WHERE state = 'running' AND queue = ANY ($1) AND attempted_at < now() - $2::interval
			UNION ALL
			SELECT id FROM river_job WHERE state = 'scheduled' AND queue = ANY ($1) AND priority IN (1, 2, 3) AND scheduled_at <= now()
			LIMIT 10000)
		AND state IN ('running', 'scheduled')`, queues, stuckAfter)
	if err != nil {
		return 0, fmt.Errorf("revive jobs: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// pruneStep bounds how many events one statement removes.
const pruneStep = 2000

// Prune removes events stored before the given time with their deliveries and
// attempts, and returns how many it removed.
func (d *Deliverer) Prune(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for {
		tag, err := d.DB.Exec(ctx, `DELETE FROM account_events WHERE seq IN (
			SELECT seq FROM account_events WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, before, pruneStep)
		removed += int(tag.RowsAffected())
		if err != nil {
			return removed, fmt.Errorf("prune events: %w", err)
		}
		if tag.RowsAffected() < pruneStep {
			return removed, nil
		}
	}
}
