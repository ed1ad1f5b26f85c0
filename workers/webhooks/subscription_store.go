package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Create checks in and stores it for account. The answer has the secret, for
// the only time. It fails with invalid_request naming every bad field, and
// with conflict when the account has Config.MaxSubscriptions already.
func (s *Service) Create(ctx context.Context, account string, in Create) (Subscription, error) {
	c := checker{groups: s.Groups}
	c.create(in)
	if err := s.finishCheck(ctx, &c, in.URL); err != nil {
		return Subscription{}, err
	}
	concurrency := DefaultConcurrency
	if in.MaxConcurrency != nil {
		concurrency = *in.MaxConcurrency
	}
	now := s.Now()
	id := ids.New("wh_", now)
	var out Subscription
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := s.checkRoom(ctx, tx, account); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			INSERT INTO webhook_subscriptions (id, account_id, url, events, description, secret, retry_schedule,
				max_concurrency, rate_per_second, ordered, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING `+subscriptionColumns,
			id, account, in.URL, in.Events, in.Description, s.Box.Seal([]byte(in.Secret), id), orNull(in.RetrySchedule),
			concurrency, in.RatePerSecond, in.Ordered, now)
		var err error
		if out, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription]); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.create", Target: id, After: out})
	})
	out.Secret = in.Secret
	return out, storeError(err, "store subscription")
}

// finishCheck adds what the guarded client says of url, if its form is good
// (empty: not asked), and returns all that is wrong.
func (s *Service) finishCheck(ctx context.Context, c *checker, url string) error {
	urlIsBad := false
	for _, d := range c.details {
		urlIsBad = urlIsBad || d.Field == "url"
	}
	if url != "" && !urlIsBad {
		if err := s.Client.CheckURL(ctx, url); err != nil {
			c.details = append(c.details, outbound.Detail("url", err))
		}
	}
	return apierror.Invalid(c.details)
}

// checkRoom fails with conflict when account has all the subscriptions that it
// may have.
func (s *Service) checkRoom(ctx context.Context, tx pgx.Tx, account string) error {
	// The lock makes two creations at the limit wait for each other.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhooks:' || $1, 0))`, account); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook_subscriptions WHERE account_id = $1`, account).Scan(&n); err != nil {
		return err
	}
	if n >= s.MaxSubscriptions {
		return apierror.Errorf(decision.Conflict, "The account has %d webhook subscriptions, which is the most there can be.", n)
	}
	return nil
}

// Get returns a subscription of account, or not_found.
func (s *Service) Get(ctx context.Context, account, id string) (Subscription, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+subscriptionColumns+` FROM webhook_subscriptions WHERE id = $1 AND account_id = $2`, id, account)
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription])
	return out, postgres.NotFound(err, "read subscription")
}

// Subscriptions is how subscriptions are listed: newest first, by address if asked for. An
// account has MaxSubscriptions at most.
var Subscriptions = paging.Table[Subscription]{
	Columns: subscriptionColumns, From: "webhook_subscriptions", Scan: pgx.RowToStructByPos[Subscription],
	Sorts: []paging.Sort[Subscription]{
		paging.Time("created_at", "created_at", func(s Subscription) time.Time { return s.CreatedAt.Time }),
		paging.Text("url", "url", func(s Subscription) string { return s.URL }),
	},
	ID: "id", IDOf: func(s Subscription) string { return s.ID },
	Created: "created_at", Name: "url", Param: "url",
}

// Page returns a page of account's subscriptions with a status (empty: any).
func (s *Service) Page(ctx context.Context, account, status string, p paging.Page) (paging.List[Subscription], error) {
	return Subscriptions.Read(ctx, s.DB, p, `account_id = $1 AND ($2 = '' OR status = $2)`, account, status)
}

// Delete removes a subscription, or fails with not_found. Jobs that are queued
// for it find nothing to do; its log goes with the events that are in it.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `DELETE FROM webhook_subscriptions WHERE id = $1 AND account_id = $2 RETURNING `+subscriptionColumns, id, account)
		before, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription])
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.delete", Target: id, Before: before})
	})
	return postgres.NotFound(err, "delete subscription")
}

// subscriptionColumns are the fields of Subscription. Secrets are not among
// them: they are read only where something is signed.
const subscriptionColumns = `id, url, events, description, status, disabled_reason, retry_schedule, max_concurrency,
	rate_per_second, ordered, failing_since, created_at, updated_at`

// orNull turns an empty list into NULL, which stands for the default.
func orNull[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

// storeError says what was being done, and marks an unreachable database.
func storeError(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
