package delivery

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/workers/webhooks"
)

// findSQL reads all claims at once. A claim whose delivery is not pending any
// more, or at another generation, has no row: its job is out of date. Of an
// ordered delivery it also reads when the one before it is due, if that is not
// finished.
const findSQL = `
SELECT want.position, d.failures, s.account_id, s.id, s.url, s.status, s.secret,
	CASE WHEN s.old_secret_until > $3 THEN s.old_secret END, s.retry_schedule, s.failing_since, coalesce(s.rate_per_second, 0), s.max_concurrency,
	d.next_attempt_at, e.id, e.type, e.body,
	(SELECT coalesce(max(a.number), 0) FROM webhook_attempts a WHERE a.delivery_id = d.id) + 1,
	CASE WHEN d.order_key IS NOT NULL THEN (
		SELECT coalesce(p.next_attempt_at, $3) FROM webhook_deliveries p
		WHERE p.subscription_id = d.subscription_id AND p.order_key = d.order_key AND p.id < d.id AND p.status IN ('pending', 'held')
		ORDER BY p.id LIMIT 1) END,
	a.suspended_at IS NOT NULL
FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS want (id, generation, position)
JOIN webhook_deliveries d ON d.id = want.id AND d.generation = want.generation AND d.status = 'pending'
JOIN webhook_subscriptions s ON s.id = d.subscription_id
JOIN accounts a ON a.id = s.account_id
JOIN account_events e ON e.seq = d.event_seq`

// find reads what claims name and decides about each. The result has their order; its
// zero value says out of date.
func (d *Deliverer) find(ctx context.Context, claims []claim) ([]opened, error) {
	ids, generations := make([]int64, len(claims)), make([]int, len(claims))
	found := make([]opened, len(claims))
	for i, c := range claims {
		ids[i], generations[i], found[i].claim = c.delivery, c.generation, c
	}
	now := d.Now()
	rows, err := d.DB.Query(ctx, findSQL, ids, generations, now)
	if err != nil {
		return nil, fmt.Errorf("find deliveries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var position int
		o := opened{startedAt: now}
		var row foundRow
		if err := rows.Scan(row.into(&position, &o)...); err != nil {
			return nil, fmt.Errorf("find deliveries: %w", err)
		}
		o.claim = claims[position-1]
		d.decide(&o, row, now)
		found[position-1] = o
	}
	return found, rows.Err()
}

// foundRow has those columns of findSQL that are turned into something else.
type foundRow struct {
	status       webhooks.Status
	secret, old  []byte
	schedule     []int
	failingSince *time.Time
	due          *time.Time
	blockedUntil *time.Time // set: an earlier delivery of the same order is not finished
	suspended    bool       // the account is
}

// into lists where the columns of findSQL go.
func (r *foundRow) into(position *int, o *opened) []any {
	return []any{position, &o.failures, &o.account, &o.subscription, &o.url, &r.status, &r.secret, &r.old, &r.schedule,
		&r.failingSince, &o.rate, &o.most, &r.due, &o.eventID, &o.eventType, &o.body, &o.number, &r.blockedUntil, &r.suspended}
}

// How often a delivery looks whether the one before it is finished.
const (
	minOrderWait = 100 * time.Millisecond
	maxOrderWait = 30 * time.Second
)

// decide sets the verdict on one delivery by its own row: whether its subscription
// and its account take deliveries, and whether it is its turn.
func (d *Deliverer) decide(o *opened, r foundRow, now time.Time) {
	if r.failingSince != nil {
		o.failingSince = *r.failingSince
	}
	o.due, o.schedule = dueOf(r.due, now), d.Schedule
	if len(r.schedule) > 0 {
		o.schedule = make([]time.Duration, len(r.schedule))
		for i, s := range r.schedule {
			o.schedule[i] = time.Duration(s) * time.Second
		}
	}
	switch {
	case r.status != webhooks.Active, r.suspended:
		o.verdict = onHold
	case o.due.After(now):
		// The queue goes by the database's clock. Where that is ahead of ours, a retry would be early.
		o.verdict, o.wait = waitABit, min(o.due.Sub(now), maxOrderWait)
	case r.blockedUntil != nil:
		o.verdict, o.wait = waitABit, min(max(r.blockedUntil.Sub(now), minOrderWait), maxOrderWait)
	default:
		o.verdict = goAhead
		d.openSecrets(o, r)
	}
}

// openSecrets puts a delivery off whose secret cannot be opened, because the
// key was changed by mistake: the others of the batch go on, and it goes out
// once the key is back.
func (d *Deliverer) openSecrets(o *opened, r foundRow) {
	var err error
	if o.secrets, err = d.Service.OpenSecrets(o.subscription, r.secret, r.old); err != nil {
		d.Log.Error("webhook secret cannot be opened", "subscription", o.subscription, "cause", err)
		o.verdict, o.wait = waitABit, maxOrderWait
	}
}
