package delivery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/retry"
)

// Names of the events about deliveries. A failure to deliver one of them makes
// no further one: two broken endpoints would keep each other busy.
const (
	eventFailed   = "webhook.delivery_failed"
	eventDisabled = "webhook.disabled"
	ownGroup      = "webhook."
)

// Reasons for disabling a subscription.
const (
	reasonGone    = "gone"
	reasonFailing = "failing"
)

// noteHealth keeps since when each subscription has done nothing but fail,
// disables those that have for too long or answered 410, and tells the account
// of those and of deliveries that have failed for good.
func (d *Deliverer) noteHealth(ctx context.Context, tx pgx.Tx, all []closed) error {
	if err := noteSuccesses(ctx, tx, all); err != nil {
		return fmt.Errorf("note successes: %w", err)
	}
	if err := noteFailures(ctx, tx, all); err != nil {
		return fmt.Errorf("note failures: %w", err)
	}
	for _, c := range all {
		if c.response.OK() {
			continue
		}
		if err := d.tell(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// noteSuccesses writes only where something changes, which is seldom: rows of
// subscriptions are shared by all workers.
func noteSuccesses(ctx context.Context, tx pgx.Tx, all []closed) error {
	var ids []string
	for _, c := range all {
		if c.response.OK() && !c.failingSince.IsZero() {
			ids = append(ids, c.subscription)
		}
	}
	if ids == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		WITH changed AS (SELECT id FROM webhook_subscriptions WHERE id = ANY ($1) AND failing_since IS NOT NULL ORDER BY id FOR NO KEY UPDATE)
		UPDATE webhook_subscriptions s SET failing_since = NULL FROM changed WHERE s.id = changed.id`, ids)
	return err
}

// noteFailures sets since when a subscription fails, unless that is set. Of
// several failures in one batch the earliest counts.
func noteFailures(ctx context.Context, tx pgx.Tx, all []closed) error {
	var ids []string
	var at []time.Time
	for _, c := range all {
		if !c.response.OK() && c.failingSince.IsZero() {
			ids, at = append(ids, c.subscription), append(at, c.at)
		}
	}
	if ids == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		WITH failed AS (SELECT id, min(at) AS at FROM unnest($1::text[], $2::timestamptz[]) AS f (id, at) GROUP BY id),
		changed AS (SELECT s.id, failed.at FROM webhook_subscriptions s JOIN failed ON failed.id = s.id
			WHERE s.failing_since IS NULL ORDER BY s.id FOR NO KEY UPDATE OF s)
		UPDATE webhook_subscriptions s SET failing_since = changed.at FROM changed WHERE s.id = changed.id`, ids, at)
	return err
}

// tell emits what the account must know about a failure: that the subscription
// was disabled by it, that the delivery has failed for good, or neither.
func (d *Deliverer) tell(ctx context.Context, tx pgx.Tx, c closed) error {
	reason := ""
	switch {
	case c.response.Outcome().Gone():
		reason = reasonGone
	case retry.Disable(c.failingSince, c.at):
		reason = reasonFailing
	}
	if reason != "" {
		if err := d.disable(ctx, tx, c, reason); err != nil {
			return fmt.Errorf("disable %s: %w", c.subscription, err)
		}
	}
	if c.next.State != retry.Failed || strings.HasPrefix(c.eventType, ownGroup) {
		return nil
	}
	return d.Service.EmitTx(ctx, tx, events.Event{
		Account: c.account, Type: eventFailed, ErrorCode: string(decision.Webhook001), Time: c.at,
		Data: map[string]any{
			"webhook_id": c.subscription, "delivery_id": webhooks.DeliveryID(c.delivery), "event_id": c.eventID,
			"event": c.eventType, "attempts": c.number, "error_code": string(decision.Webhook001),
		},
	})
}

// disable ends deliveries to a subscription, and tells the account once however
// many failures come in at that moment. What is pending is held by the next
// look at it, and released when the subscription is active again.
func (d *Deliverer) disable(ctx context.Context, tx pgx.Tx, c closed, reason string) error {
	tag, err := tx.Exec(ctx, `UPDATE webhook_subscriptions SET status = 'disabled', disabled_reason = $2, updated_at = $3
		WHERE id = $1 AND status <> 'disabled'`, c.subscription, reason, c.at)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return d.Service.EmitTx(ctx, tx, events.Event{
		Account: c.account, Type: eventDisabled, Time: c.at,
		Data: map[string]any{"webhook_id": c.subscription, "reason": reason},
	})
}
