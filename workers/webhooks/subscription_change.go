package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
)

// Update changes a subscription of account and returns it. Setting status to
// active after a pause, or after it was disabled, releases in the background
// the deliveries that waited. It fails with not_found, or with invalid_request
// naming every bad field.
func (s *Service) Update(ctx context.Context, account, id string, in Update) (Subscription, error) {
	c := checker{groups: s.Groups}
	c.update(in)
	url := ""
	if in.URL != nil {
		url = *in.URL
	}
	if err := s.finishCheck(ctx, &c, url); err != nil {
		return Subscription{}, err
	}
	var out Subscription
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if out, err = s.update(ctx, tx, id, in); err != nil {
			return err
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.update", Target: id, Before: before, After: out})
		if err != nil {
			return err
		}
		if before.Status != Active && out.Status == Active {
			_, err = s.startRecovery(ctx, tx, Recovery{SubscriptionID: id, Kind: release})
		}
		return err
	})
	return out, postgres.NotFound(err, "change subscription")
}

// lockStatus reads the status of a subscription of account and keeps others from
// changing it until the transaction ends. It fails with pgx.ErrNoRows.
func lockStatus(ctx context.Context, tx pgx.Tx, account, id string) (st Status, err error) {
	err = tx.QueryRow(ctx, `SELECT status FROM webhook_subscriptions WHERE id = $1 AND account_id = $2 FOR NO KEY UPDATE`, id, account).Scan(&st)
	return st, err
}

// lock is lockStatus for whoever needs all of the subscription.
func lock(ctx context.Context, tx pgx.Tx, account, id string) (Subscription, error) {
	rows, _ := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM webhook_subscriptions WHERE id = $1 AND account_id = $2 FOR NO KEY UPDATE`, id, account)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription])
}

// update leaves what in does not name. A subscription made active starts with
// a clean record: it is not disabled again for failures of the past.
func (s *Service) update(ctx context.Context, tx pgx.Tx, id string, in Update) (Subscription, error) {
	var schedule, events any
	if in.RetrySchedule != nil {
		schedule = orNull(*in.RetrySchedule)
	}
	if in.Events != nil {
		events = *in.Events
	}
	rows, _ := tx.Query(ctx, `
		UPDATE webhook_subscriptions SET
			url = coalesce($2, url), events = coalesce($3, events), description = coalesce($4, description),
			status = coalesce($5, status),
			disabled_reason = CASE WHEN $5::text IS NULL THEN disabled_reason END,
			failing_since = CASE WHEN $5 = 'active' AND status <> 'active' THEN NULL ELSE failing_since END,
			retry_schedule = CASE WHEN $6 THEN $7 ELSE retry_schedule END,
			max_concurrency = coalesce($8, max_concurrency),
			rate_per_second = nullif(coalesce($9, rate_per_second), 0),
			ordered = coalesce($10, ordered), updated_at = $11
		WHERE id = $1 RETURNING `+subscriptionColumns,
		id, in.URL, events, in.Description, in.Status, in.RetrySchedule != nil, schedule, in.MaxConcurrency, in.RatePerSecond, in.Ordered, s.Now())
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription])
}

// Rotate gives a subscription of account a new secret. For overlap both the
// new one and the one before it sign; an older one ends at once. The answer has
// the new secret, for the only time.
func (s *Service) Rotate(ctx context.Context, account, id, secret string, overlap time.Duration) (Subscription, error) {
	c := checker{groups: s.Groups}
	c.secret(secret)
	if overlap < 0 || overlap > MaxOverlap {
		c.bad("overlap_seconds", "is out of range", "0 to 604800")
	}
	if err := apierror.Invalid(c.details); err != nil {
		return Subscription{}, err
	}
	now := s.Now()
	var out Subscription
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		rows, _ := tx.Query(ctx, `
			UPDATE webhook_subscriptions SET old_secret = secret, old_secret_until = $4, secret = $3, updated_at = $5
			WHERE id = $1 AND account_id = $2 RETURNING `+subscriptionColumns,
			id, account, s.Box.Seal([]byte(secret), id), now.Add(overlap), now)
		if out, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription]); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.rotate", Target: id, After: map[string]any{"overlap_seconds": int(overlap / time.Second)}})
	})
	out.Secret = secret
	return out, postgres.NotFound(err, "rotate secret")
}

// Sealed is where the secrets of subscriptions are stored, for reencrypt.
func Sealed() []reencrypt.Column {
	itself := func(id string) string { return id }
	return []reencrypt.Column{
		{Table: "webhook_subscriptions", ID: "id", Value: "secret", Row: itself},
		{Table: "webhook_subscriptions", ID: "id", Value: "old_secret", Row: itself},
	}
}

// secrets returns those that sign at now: one, or two during a rotation.
func (s *Service) secrets(ctx context.Context, account, id string) (url string, secrets [][]byte, err error) {
	var present, old []byte
	err = s.DB.QueryRow(ctx, `SELECT url, secret, CASE WHEN old_secret_until > $3 THEN old_secret END
		FROM webhook_subscriptions WHERE id = $1 AND account_id = $2`, id, account, s.Now()).Scan(&url, &present, &old)
	if err != nil {
		return "", nil, postgres.NotFound(err, "read secret")
	}
	secrets, err = s.OpenSecrets(id, present, old)
	return url, secrets, err
}

// OpenSecrets opens the sealed secrets of subscription id; old may be nil.
func (s *Service) OpenSecrets(id string, present, old []byte) ([][]byte, error) {
	first, err := s.Box.Open(present, id)
	if err != nil || old == nil {
		return [][]byte{first}, err
	}
	second, err := s.Box.Open(old, id)
	return [][]byte{first, second}, err
}
