package budget

import (
	"context"
	"fmt"
	"time"
)

// maxTogether bounds the settlements of one statement.
const maxTogether = 500

// together is how many of list, from its beginning, one statement may record:
// those of one day, since it adds to one day's sums.
func together(list []settlement) int {
	n := 1
	for n < len(list) && n < maxTogether && day(list[n].at).Equal(day(list[0].at)) {
		n++
	}
	return n
}

// day is the beginning of t's day in UTC.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// record counts those of list, all of one day, that are not counted already. It
// is one statement, so all of it happens or nothing.
//
// A request without a budget has no hold before: its row then only keeps the same
// settlement from counting twice. Nothing used is nothing to count, but the hold
// is over all the same. Accounts are taken in order, so that two runtimes which
// lock the same ones do not wait for each other. A hold that is freed late is left alone
// if a repetition has taken it meanwhile: that ends later.
func (l *Ledger) record(ctx context.Context, list []settlement) error {
	n := len(list)
	ids, accounts, credentials, models := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	prompt, completion, estimated, at, frees := make([]int64, n), make([]int64, n), make([]int64, n), make([]time.Time, n), make([]string, n)
	for i, s := range list {
		ids[i], accounts[i], credentials[i], models[i], at[i], frees[i] = s.id, s.account, s.credential, s.model, s.at, s.frees
		prompt[i], completion[i] = int64(s.usage.Prompt), int64(s.usage.Completion)
		// A report says how much of its sum the runtime had to count by itself.
		if s.usage.Estimated {
			estimated[i] = int64(s.usage.Total())
		}
	}
	today := day(list[0].at)
	_, err := l.DB.Exec(ctx, `
		WITH sent AS (
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $11::text[])
				AS s (id, account, credential, model, prompt, completion, estimated, at, frees)
		), freed AS (
			DELETE FROM token_holds h USING sent WHERE h.id = frees AND h.settled_at IS NULL AND h.expires_at <= at + $12::interval
		), fresh AS (
			INSERT INTO token_holds AS h (id, account_id, tokens, expires_at, settled_at)
			SELECT DISTINCT ON (id) id, account, 0, at, at FROM sent ORDER BY id
			ON CONFLICT (id) DO UPDATE SET tokens = 0, settled_at = excluded.settled_at, expires_at = excluded.expires_at
			WHERE h.settled_at IS NULL
			RETURNING id
		), used AS (
			SELECT DISTINCT ON (id) sent.* FROM sent JOIN fresh USING (id) WHERE prompt + completion > 0 ORDER BY id
		), summed AS (
			INSERT INTO token_totals AS t (account_id, day, month, day_tokens, month_tokens)
			SELECT account, $9::date, $10::date, sum(prompt + completion), sum(prompt + completion) FROM used GROUP BY account ORDER BY account
			ON CONFLICT (account_id) DO UPDATE SET `+addToTotals+`
		)
		INSERT INTO token_usage AS u (account_id, credential_id, day, model, requests, prompt_tokens, completion_tokens, estimated_tokens)
		SELECT account, credential, $9::date, model, count(*), sum(prompt), sum(completion), sum(estimated)
		FROM used GROUP BY account, credential, model ORDER BY account, credential, model
		ON CONFLICT (account_id, day, credential_id, model) DO UPDATE SET
			requests          = u.requests + excluded.requests,
			prompt_tokens     = u.prompt_tokens + excluded.prompt_tokens,
			completion_tokens = u.completion_tokens + excluded.completion_tokens,
			estimated_tokens  = u.estimated_tokens + excluded.estimated_tokens`,
		ids, accounts, credentials, models, prompt, completion, estimated, at, today, firstOfMonth(today), frees, l.Hold)
	if err != nil {
		return fmt.Errorf("record the tokens of %d requests: %w", n, err)
	}
	return nil
}

// firstOfMonth is the first day of a day's month.
func firstOfMonth(day time.Time) time.Time { return day.AddDate(0, 0, 1-day.Day()) }

// addToTotals adds to an account's sums, or begins new ones with a new day or
// month. A runtime whose clock is behind must not turn the day back: greatest.
const addToTotals = `
	day_tokens   = excluded.day_tokens + CASE WHEN excluded.day > t.day THEN 0 ELSE t.day_tokens END,
	month_tokens = excluded.month_tokens + CASE WHEN excluded.month > t.month THEN 0 ELSE t.month_tokens END,
	day          = greatest(t.day, excluded.day),
	month        = greatest(t.month, excluded.month)`
