package assets

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// retryFor is how long the bytes of a recording that failed are kept, from the end of
// its session on, and mostKept of how many recordings of one owner.
const (
	retryFor = 24 * time.Hour
	mostKept = 10
)

// retryable reports whether a recording has failed and can be tried again.
func (a Asset) retryable(now time.Time) bool {
	return a.Status == Failed && a.RetryUntil != nil && now.Before(*a.RetryUntil)
}

// fail ends a without a file. What was recorded is kept for another try where the owner
// can do something about the failure: the file had no room, or was too large for the plan.
func (v Service) fail(ctx context.Context, tx pgx.Tx, a *Asset, cause error) error {
	a.Fail(reason(cause))
	until := a.CreatedAt.Add(retryFor)
	if a.Kind != Recording || a.ErrorCode != decision.QuotaUsed && a.ErrorCode != decision.Storage001 || !v.Now().Before(until) {
		return nil
	}
	var kept int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM media_assets WHERE owner = $1 AND kind = 'recording' AND status = 'failed' AND retry_until > $2 AND id <> $3`,
		a.Owner, v.Now(), a.ID).Scan(&kept)
	if err != nil {
		return fmt.Errorf("count what is kept: %w", err)
	}
	if kept < mostKept {
		a.RetryUntil = &until
	}
	return nil
}

// retry answers POST /v1/recordings/{id}/retry: what was recorded is stored anew, within
// the limits of the plan that the owner has now. It fails with conflict when the
// recording has not failed, or its bytes are gone.
func (v Service) retry(t owner.Target, r *http.Request, _ httpapi.None) (View, error) {
	var a Asset
	err := postgres.InTx(r.Context(), v.DB, func(tx pgx.Tx) (err error) {
		a, err = one(r.Context(), tx, `owner = $1 AND kind = 'recording' AND id = $2 FOR UPDATE`, t.Owner.ID, t.ID)
		if err != nil {
			return err
		}
		if a.Status != Failed {
			return apierror.Errorf(decision.Conflict, "The recording has not failed: it is %s.", a.Status)
		}
		if !a.retryable(v.Now()) {
			return apierror.Errorf(decision.Conflict, "What was recorded is not kept any more: there is nothing to try again.")
		}
		a.Status, a.ErrorCode, a.ErrorMessage, a.Plan, a.UpdatedAt = Processing, "", "", t.Owner.Plan, now(v.Now)
		_, err = tx.Exec(r.Context(), `UPDATE media_assets SET status = $2, error_code = '', error_message = '', plan = $3, updated_at = $4 WHERE id = $1`,
			a.ID, a.Status, a.Plan, a.UpdatedAt)
		if err != nil {
			return fmt.Errorf("retry recording: %w", err)
		}
		return nil
	})
	return v.show(r, a, err)
}

// Wanted returns which of these recordings may still need the bytes that are kept for
// them: they are yet to be stored, or can be tried again.
func (v Service) Wanted(ctx context.Context, ids []string) (map[string]bool, error) {
	rows, _ := v.DB.Query(ctx, `SELECT id FROM media_assets WHERE id = ANY ($1)
		AND (status = 'processing' AND file_id = '' OR status = 'failed' AND retry_until > $2)`, ids, v.Now())
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	wanted := map[string]bool{}
	for _, id := range found {
		wanted[id] = true
	}
	return wanted, nil
}
