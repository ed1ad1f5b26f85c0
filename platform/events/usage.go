package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// UsageWarning is the type of the events that tell an account what it has used.
const UsageWarning = "billing.usage_warning"

// warnAt are the shares of a quota, in percent, of which an account is told.
var warnAt = []int64{80, 90, 100}

// Usage is what an account has used of a quota in a window.
type Usage struct {
	Account  string
	Resource string    // storage, requests, tokens_daily or tokens_monthly
	Used     int64     // bytes, requests or tokens
	Quota    int64     // in the same unit; 0: none
	From     time.Time // when the window begins: a day, or the first of a month, of UTC
	Until    time.Time // its last second
}

// Month is u in the month of now.
func (u Usage) Month(now time.Time) Usage {
	u.From = time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	u.Until = u.From.AddDate(0, 1, 0).Add(-time.Second)
	return u
}

// Day is u in the day of now.
func (u Usage) Day(now time.Time) Usage {
	u.From = now.UTC().Truncate(24 * time.Hour)
	u.Until = u.From.AddDate(0, 0, 1).Add(-time.Second)
	return u
}

// WarnTx tells the account of each of the shares that it has reached and has not been told
// of in the window: billing.usage_warning, once for each. What was told is a row of
// usage_warnings, written with the event: of several at once one tells, and one that
// is undone has told nothing. It returns how many events there were.
func (u Usage) WarnTx(ctx context.Context, tx pgx.Tx, to Emitter, now time.Time) (int, error) {
	var reached []int64
	for _, percent := range warnAt {
		if u.Quota > 0 && u.Account != "" && float64(u.Used)*100 >= float64(u.Quota)*float64(percent) {
			reached = append(reached, percent)
		}
	}
	if reached == nil {
		return 0, nil
	}
	rows, _ := tx.Query(ctx, `WITH told AS (
			INSERT INTO usage_warnings (account_id, resource, window_start, percent, warned_at) SELECT $1, $2, $3, p, $5 FROM unnest($4::bigint[]) p
			ON CONFLICT (account_id, resource, window_start, percent) DO NOTHING RETURNING percent
		) SELECT percent::bigint FROM told ORDER BY percent`, u.Account, u.Resource, u.From, reached, now)
	fresh, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("note usage warnings: %w", err)
	}
	for _, percent := range fresh {
		if err := to.EmitTx(ctx, tx, Event{Account: u.Account, Type: UsageWarning, Time: now, Data: u.data(percent)}); err != nil {
			return 0, err
		}
	}
	return len(fresh), nil
}

// data is what the event says.
func (u Usage) data(percent int64) map[string]any {
	d := map[string]any{
		"resource": u.Resource, "threshold": percent, "usage_percentage": float64(int64(float64(u.Used)*1000/float64(u.Quota))) / 10,
		"current_usage": u.Used, "quota": u.Quota, "period_end": u.Until.Format(time.RFC3339),
	}
	if u.Resource == "storage" {
		d["current_usage_gb"], d["quota_gb"] = float64(u.Used)/1e9, float64(u.Quota)/1e9
	}
	return d
}
