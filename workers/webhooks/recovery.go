package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/postgres"
)

// recoveryKind is what a recovery looks for.
type recoveryKind string

const (
	recoverFailed recoveryKind = "recover" // what has failed since a time
	release       recoveryKind = "release" // what was held back
)

// Recovery is the resending of many deliveries in the background.
type Recovery struct {
	ID             string       `json:"id"`
	SubscriptionID string       `json:"webhook_id"`
	Kind           recoveryKind `json:"-"`
	Since          Timestamp    `json:"since"`
	Until          Timestamp    `json:"until"`
	IncludeMissed  bool         `json:"include_missed"` // also events that made no delivery, because the subscription was disabled
	Status         string       `json:"status"`         // running or completed
	Total          int          `json:"total"`          // how many there were to resend when it began
	Resent         int          `json:"resent"`         // how many are queued again
	CreatedAt      Timestamp    `json:"created_at"`
	FinishedAt     Timestamp    `json:"finished_at"`
}

// recoveryColumns are the fields of Recovery.
const recoveryColumns = `id, subscription_id, kind, since, until, include_missed, status, total, resent, created_at, finished_at`

// Recover starts resending, in the background, every delivery of a
// subscription of account whose event was stored in [since, until) and that
// has failed; zero until: up to now. It fails with conflict when the
// subscription is not active.
func (s *Service) Recover(ctx context.Context, account, id string, since, until time.Time, includeMissed bool) (Recovery, error) {
	now := s.Now()
	if until.IsZero() || until.After(now) {
		until = now
	}
	if since.IsZero() || !since.Before(until) {
		return Recovery{}, apierror.Invalid([]decision.Detail{{Field: "since", Issue: "is missing or not before the end", Expected: "ISO 8601 timestamp in the past"}})
	}
	var out Recovery
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		status, err := lockStatus(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if status != Active {
			return apierror.Errorf(decision.Conflict, "The subscription is %s: make it active first.", status)
		}
		out, err = s.startRecovery(ctx, tx, Recovery{SubscriptionID: id, Since: Timestamp{since}, Until: Timestamp{until}, IncludeMissed: includeMissed, Kind: recoverFailed})
		return err
	})
	return out, postgres.NotFound(err, "start recovery")
}

// startRecovery stores r with its first job. The total is what there is to
// resend at this moment; missed events are counted as they are found.
func (s *Service) startRecovery(ctx context.Context, tx pgx.Tx, r Recovery) (Recovery, error) {
	now := s.Now()
	rows, _ := tx.Query(ctx, `
		INSERT INTO webhook_recoveries (id, subscription_id, kind, since, until, include_missed, created_at, total)
		VALUES ($1, $2, $3, $4, $5, $6, $7, (
			SELECT count(*) FROM webhook_deliveries d JOIN account_events e ON e.seq = d.event_seq
			WHERE d.subscription_id = $2 AND ($3 = 'release' AND d.status = 'held'
				OR $3 = 'recover' AND d.status = 'failed' AND e.created_at >= $4 AND e.created_at < $5)))
		RETURNING `+recoveryColumns,
		ids.New("rec_", now), r.SubscriptionID, r.Kind, r.Since.Time, r.Until.Time, r.IncludeMissed, now)
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Recovery])
	if err != nil {
		return out, err
	}
	var account string
	if err := tx.QueryRow(ctx, `SELECT account_id FROM webhook_subscriptions WHERE id = $1`, out.SubscriptionID).Scan(&account); err != nil {
		return out, err
	}
	job := river.InsertManyParams{Args: RecoveryArgs{out.ID, account}, InsertOpts: &river.InsertOpts{Queue: QueueBackground}}
	return out, s.enqueue(ctx, tx, []river.InsertManyParams{job})
}

// Recoveries is how recoveries are listed: newest first.
var Recoveries = paging.Table[Recovery]{
	Columns: recoveryColumns, From: "webhook_recoveries", Scan: pgx.RowToStructByPos[Recovery],
	Sorts: []paging.Sort[Recovery]{paging.Time("created_at", "created_at", func(r Recovery) time.Time { return r.CreatedAt.Time })},
	ID:    "id", IDOf: func(r Recovery) string { return r.ID },
	Created: "created_at",
	Log:     true,
}

// RecoveryPage returns a page of those of a subscription of account.
func (s *Service) RecoveryPage(ctx context.Context, account, id string, p paging.Page) (paging.List[Recovery], error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return paging.List[Recovery]{}, err
	}
	return Recoveries.Read(ctx, s.DB, p, `subscription_id = $1 AND kind = 'recover'`, id)
}

// Recovery returns one of a subscription of account, or not_found.
func (s *Service) Recovery(ctx context.Context, account, id, recovery string) (Recovery, error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return Recovery{}, err
	}
	rows, _ := s.DB.Query(ctx, `SELECT `+recoveryColumns+` FROM webhook_recoveries WHERE id = $1 AND subscription_id = $2`, recovery, id)
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Recovery])
	return out, postgres.NotFound(err, "read recovery")
}
