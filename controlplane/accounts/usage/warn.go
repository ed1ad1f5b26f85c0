package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

const (
	// lateFor is for how long after the end of a day or month what was used in it is looked at
	// once more: edges and runtimes have told all of it by then.
	lateFor = 15 * time.Minute
	// maxWarned bounds the accounts that one round tells; the rest follow in the next.
	maxWarned = 1000
	// keepWarnings is for how long it is known what accounts have been told.
	keepWarnings = 70 * 24 * time.Hour
)

// nearQuota finds accounts with a quota or budget of which they have used a share that they have
// not been told of. $1 is today, $2 yesterday, $3 this month, $4 the month before or null,
// $5 whether yesterday is looked at.
const nearQuota = `
WITH used AS (
	SELECT account_id, 'requests' AS resource, month AS window_start, sum(requests)::bigint AS used
		FROM usage_totals WHERE month IN ($3, $4) AND EXISTS (SELECT FROM request_quotas) GROUP BY account_id, month
	UNION ALL SELECT account_id, 'tokens_daily', day, day_tokens FROM token_totals WHERE day = $1
	UNION ALL SELECT account_id, 'tokens_monthly', month, month_tokens FROM token_totals WHERE month = $3
	UNION ALL SELECT account_id, 'tokens_daily', day, sum(prompt_tokens + completion_tokens)::bigint
		FROM token_usage WHERE $5 AND day = $2 GROUP BY account_id, day
	UNION ALL SELECT account_id, 'tokens_monthly', $4::date, sum(prompt_tokens + completion_tokens)::bigint
		FROM token_usage WHERE day >= $4::date AND day < $3 GROUP BY account_id
), judged AS (
	SELECT u.*, CASE u.resource WHEN 'requests' THEN q.monthly WHEN 'tokens_daily' THEN b.daily ELSE b.monthly END AS quota
	FROM used u JOIN accounts a ON a.id = u.account_id
	LEFT JOIN request_quotas q ON q.plan = a.plan LEFT JOIN token_budgets b ON b.plan = a.plan
)
SELECT account_id, resource, window_start, used, quota FROM judged j
WHERE quota > 0 AND used::numeric * 100 >= quota::numeric * 80
	AND (SELECT count(*) FROM usage_warnings w WHERE w.account_id = j.account_id AND w.resource = j.resource AND w.window_start = j.window_start)
		< CASE WHEN used >= quota THEN 3 WHEN used::numeric * 100 >= quota::numeric * 90 THEN 2 ELSE 1 END
ORDER BY account_id, resource, window_start LIMIT $6`

// Warn tells accounts that they have used 80, 90 or 100 % of what their plan allows of
// requests in a month, and of tokens in a day and a month. It returns how many events
// there were. It may run anywhere at any time: see events.Usage.WarnTx.
func (s Store) Warn(ctx context.Context, to events.Emitter) (n int, err error) {
	now := s.now()
	today, month := now.Truncate(24*time.Hour), monthOf(now)
	var before *time.Time // the month before
	late := now.Sub(today) < lateFor
	if late && today.Equal(month) {
		m := month.AddDate(0, -1, 0)
		before = &m
	}
	rows, _ := s.DB.Query(ctx, nearQuota, today, today.AddDate(0, 0, -1), month, before, late, maxWarned)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u events.Usage, err error) {
		err = row.Scan(&u.Account, &u.Resource, &u.From, &u.Used, &u.Quota)
		if u.Resource == "tokens_daily" {
			return u.Day(u.From), err
		}
		return u.Month(u.From), err
	})
	if err != nil {
		return 0, fmt.Errorf("find usage near quotas: %w", err)
	}
	for _, u := range list {
		err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
			told, err := u.WarnTx(ctx, tx, to, now)
			n += told
			return err
		})
		if err != nil {
			return n, err
		}
	}
	if _, err := s.DB.Exec(ctx, `DELETE FROM usage_warnings WHERE window_start < $1`, now.Add(-keepWarnings)); err != nil {
		return n, fmt.Errorf("drop old usage warnings: %w", err)
	}
	return n, nil
}
