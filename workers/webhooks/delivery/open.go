package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// claim names what a job wants to attempt.
type claim struct {
	delivery   int64
	generation int
	of         string // the account, as the job says; "": a release that did not say made it
}

// verdict says what becomes of a claim.
type verdict int

const (
	outOfDate verdict = iota // nothing to do: done, overtaken or deleted
	goAhead
	waitABit // in order, or by rate: ask again after opened.wait
	onHold   // paused, disabled, or the account is suspended: the delivery waits for a release
)

// opened is a delivery as found, and the attempt that was opened for it.
type opened struct {
	claim
	verdict verdict
	wait    time.Duration

	failures     int       // since the last send or resend
	number       int       // of the attempt
	due          time.Time // when the attempt was to begin
	startedAt    time.Time
	account      string
	subscription string
	url          string   // as it was when the attempt was opened
	secrets      [][]byte // the present one, and the former during a rotation
	schedule     []time.Duration
	failingSince time.Time // of the subscription; zero: its last attempt succeeded
	rate         int       // a second; 0: no limit
	most         int       // requests at a time
	eventID      string
	eventType    string
	body         []byte
}

// openAll finds what claims name, decides which may go, and opens an attempt
// for each of those. The result has their order.
func (d *Deliverer) openAll(ctx context.Context, claims []claim) ([]opened, error) {
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

// hold marks the deliveries of subscriptions that are not active, or of suspended accounts. The
// share locks make it wait for a change of either that is being committed: either
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
		WITH suspended AS (SELECT a.id FROM accounts a WHERE a.id IN (SELECT s.account_id FROM webhook_subscriptions s
				WHERE s.id IN (SELECT subscription_id FROM webhook_deliveries WHERE id = ANY ($1))) AND a.suspended_at IS NOT NULL
			ORDER BY a.id FOR SHARE),
		still AS (SELECT s.id FROM webhook_subscriptions s
			WHERE s.id IN (SELECT subscription_id FROM webhook_deliveries WHERE id = ANY ($1)) AND s.status <> 'active'
			ORDER BY s.id FOR SHARE),
		waiting AS (SELECT id FROM still UNION SELECT s.id FROM webhook_subscriptions s JOIN suspended a ON a.id = s.account_id)
		UPDATE webhook_deliveries d SET status = 'held', generation = generation + 1, next_attempt_at = NULL
		FROM waiting WHERE d.id = ANY ($1) AND d.subscription_id = waiting.id AND d.status = 'pending' RETURNING d.id`, ids)
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

// openSQL writes the attempts that are about to be made. One that a crash left
// open is marked interrupted: it may or may not have reached the receiver.
const openSQL = `
WITH mine AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS m (delivery_id, number, url)),
cut AS (
	UPDATE webhook_attempts a SET outcome = 'interrupted' FROM mine
	WHERE a.delivery_id = mine.delivery_id AND a.number < mine.number AND a.outcome IS NULL)
INSERT INTO webhook_attempts (delivery_id, number, url, started_at) SELECT delivery_id, number, url, $4 FROM mine
ON CONFLICT ON CONSTRAINT webhook_attempts_pkey DO NOTHING RETURNING delivery_id`

// openAttempts commits the attempts of those that go ahead. From here on the
// log has them, whatever happens to this process.
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
	keepOnly(all, mine, at)
	return nil
}

// keepOnly lets those go ahead whose attempt was opened by us. Another worker
// that opened the same one at the same moment makes it.
func keepOnly(all []opened, mine []int64, at map[int64]int) {
	won := make(map[int]bool, len(mine))
	for _, id := range mine {
		won[at[id]] = true
	}
	for i := range all {
		if all[i].verdict == goAhead && !won[i] {
			all[i].verdict, all[i].wait = waitABit, time.Second
		}
	}
}
