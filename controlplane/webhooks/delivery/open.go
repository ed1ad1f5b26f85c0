package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/webhooks"
)

// claim names what a job wants to attempt.
type claim struct {
	delivery   int64
	generation int
}

type verdict int

const (
	outOfDate verdict = iota // nothing to do: done, overtaken or deleted
	goAhead
	waitABit // in order, or by rate: ask again after opened.wait
	onHold   // paused or disabled: the delivery waits for a release
)

// opened is a delivery as found, and the attempt that was opened for it.
type opened struct {
	claim
	verdict verdict
	wait    time.Duration

	failures     int
	number       int // of the attempt
	due          time.Time
	startedAt    time.Time
	account      string
	subscription string
	url          string
	secrets      [][]byte
	schedule     []time.Duration
	failingSince time.Time
	rate         int // a second; 0: no limit
	most         int // requests at a time
	eventID      string
	eventType    string
	body         []byte
}

// openAll finds what claims name, decides which may go, and opens an attempt
// for each of those. The result has their order.
func (d *Deliverer) openAll(claims []claim) ([]opened, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.StoreTimeout)
	defer cancel()
	found, err := d.find(ctx, claims)
	if err != nil {
		return nil, err
	}
	if err := d.reserve(ctx, found); err != nil {
		return nil, err
	}
	if err := d.hold(ctx, found); err != nil {
		return nil, err
	}
	return found, d.openAttempts(ctx, found)
}

const findSQL = `
SELECT want.position, d.failures, s.account_id, s.id, s.url, s.status, s.secret,
	CASE WHEN s.old_secret_until > $3 THEN s.old_secret END, s.retry_schedule, s.failing_since, coalesce(s.rate_per_second, 0), s.max_concurrency,
	d.next_attempt_at, e.id, e.type, e.body,
	(SELECT coalesce(max(a.number), 0) FROM webhook_attempts a WHERE a.delivery_id = d.id) + 1,
	CASE WHEN d.order_key IS NOT NULL THEN (
		SELECT coalesce(p.next_attempt_at, $3) FROM webhook_deliveries p
		WHERE p.subscription_id = d.subscription_id AND p.order_key = d.order_key AND p.id < d.id AND p.status IN ('pending', 'held')
		ORDER BY p.id LIMIT 1) END
FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS want (id, generation, position)
JOIN webhook_deliveries d ON d.id = want.id AND d.generation = want.generation AND d.status = 'pending'
JOIN webhook_subscriptions s ON s.id = d.subscription_id
JOIN account_events e ON e.seq = d.event_seq`

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
		if err := d.judge(&o, row, now); err != nil {
			return nil, err
		}
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
}

func (r *foundRow) into(position *int, o *opened) []any {
	return []any{position, &o.failures, &o.account, &o.subscription, &o.url, &r.status, &r.secret, &r.old, &r.schedule,
		&r.failingSince, &o.rate, &o.most, &r.due, &o.eventID, &o.eventType, &o.body, &o.number, &r.blockedUntil}
}

// How often a delivery looks whether the one before it is finished.
const (
	minOrderWait = 100 * time.Millisecond
	maxOrderWait = 30 * time.Second
)

func (d *Deliverer) judge(o *opened, r foundRow, now time.Time) (err error) {
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
	case r.status != webhooks.Active:
		o.verdict = onHold
	case r.blockedUntil != nil:
		o.verdict, o.wait = waitABit, min(max(r.blockedUntil.Sub(now), minOrderWait), maxOrderWait)
	default:
		o.verdict = goAhead
		o.secrets, err = d.Service.OpenSecrets(o.subscription, r.secret, r.old)
	}
	return err
}

// hold marks the deliveries of subscriptions that are not active. The share
// lock makes it wait for a change of status that is being committed: either
// that change sees the delivery held and releases it, or this sees it active
// and the job comes back.
func (d *Deliverer) hold(ctx context.Context, all []opened) error {
	var ids []int64
	for i := range all {
		if all[i].verdict == onHold {
			ids = append(ids, all[i].delivery)
			all[i].wait = minOrderWait
		}
	}
	if ids == nil {
		return nil
	}
	rows, _ := d.DB.Query(ctx, `
		WITH still AS (SELECT s.id FROM webhook_subscriptions s
			WHERE s.id IN (SELECT subscription_id FROM webhook_deliveries WHERE id = ANY ($1)) AND s.status <> 'active'
			ORDER BY s.id FOR SHARE)
		UPDATE webhook_deliveries d SET status = 'held', generation = generation + 1, next_attempt_at = NULL
		FROM still WHERE d.id = ANY ($1) AND d.subscription_id = still.id AND d.status = 'pending' RETURNING d.id`, ids)
	held, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("hold deliveries: %w", err)
	}
	for _, id := range held {
		for i := range all {
			if all[i].delivery == id {
				all[i].verdict, all[i].wait = outOfDate, 0
			}
		}
	}
	return nil
}

// openAttempts writes the attempts that are about to be made. One that a crash
// left open is marked interrupted: it may or may not have reached the receiver.
const openSQL = `
WITH mine AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS m (delivery_id, number, url)),
cut AS (
	UPDATE webhook_attempts a SET outcome = 'interrupted' FROM mine
	WHERE a.delivery_id = mine.delivery_id AND a.number < mine.number AND a.outcome IS NULL)
INSERT INTO webhook_attempts (delivery_id, number, url, started_at) SELECT delivery_id, number, url, $4 FROM mine
ON CONFLICT ON CONSTRAINT webhook_attempts_pkey DO NOTHING RETURNING delivery_id`

func (d *Deliverer) openAttempts(ctx context.Context, all []opened) error {
	var ids []int64
	var numbers []int
	var urls []string
	at := map[int64]int{}
	for i, o := range all {
		if _, twice := at[o.delivery]; o.verdict == goAhead && !twice {
			at[o.delivery] = i
			ids, numbers, urls = append(ids, o.delivery), append(numbers, o.number), append(urls, o.url)
		}
	}
	if ids == nil {
		return nil
	}
	rows, _ := d.DB.Query(ctx, openSQL, ids, numbers, urls, all[at[ids[0]]].startedAt)
	mine, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("open attempts: %w", err)
	}
	return keepOnly(all, mine, at)
}

// keepOnly lets those go ahead whose attempt was opened by us. Another worker
// that opened the same one at the same moment makes it.
func keepOnly(all []opened, mine []int64, at map[int64]int) error {
	won := make(map[int]bool, len(mine))
	for _, id := range mine {
		won[at[id]] = true
	}
	for i := range all {
		if all[i].verdict == goAhead && !won[i] {
			all[i].verdict, all[i].wait = waitABit, time.Second
		}
	}
	return nil
}
