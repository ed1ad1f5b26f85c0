package billing

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// MaxDays bounds the period of a report.
const MaxDays = 366

// Period is a range of days, both included.
type Period struct {
	Start Date `json:"start"`
	End   Date `json:"end"`
}

// ParsePeriod reads from and to, dates; absent: the first of the month, and
// today. It fails with invalid_request that names every bad one.
//
// It takes time linear in the values that it reads.
func ParsePeriod(q url.Values, now time.Time) (Period, error) {
	now = now.UTC()
	day := func(y int, m time.Month, d int) Date { return Date{time.Date(y, m, d, 0, 0, 0, 0, time.UTC)} }
	p := Period{day(now.Year(), now.Month(), 1), day(now.Year(), now.Month(), now.Day())}
	var details []decision.Detail
	for name, d := range map[string]*Date{"from": &p.Start, "to": &p.End} {
		if s := q.Get(name); s != "" {
			parsed, err := ParseDate(s)
			if err != nil {
				details = append(details, decision.Detail{Field: name, Issue: "is not valid", Expected: "a date such as 2026-11-21"})
				continue
			}
			*d = parsed
		}
	}
	if days := p.End.Sub(p.Start.Time).Hours() / 24; len(details) == 0 && (days < 0 || days >= MaxDays) {
		details = append(details, decision.Detail{Field: "to", Issue: "is out of range", Expected: fmt.Sprintf("a date from 'from' to %d days later", MaxDays-1)})
	}
	return p, apierror.Invalid(details)
}

// Tokens are the tokens of chat completions.
type Tokens struct {
	Requests   int64 `json:"requests"`
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// DayTokens are those of one day and model.
type DayTokens struct {
	Day   Date   `json:"day"`
	Model string `json:"model"`
	Tokens
}

// Usage is what an account has used in a period, as metered.
type Usage struct {
	Period Period      `json:"period"`
	Plan   string      `json:"plan"`
	Tokens Tokens      `json:"tokens"`
	Limit  *int64      `json:"monthly_token_limit"` // of the plan; null: none
	Data   []DayTokens `json:"data"`
	// Requests are those that edges have counted in the period, and Month those of
	// the present month that count towards the plan's quota.
	Requests usage.Amounts `json:"requests"`
	Month    usage.Month   `json:"month_to_date"`
	// Storage is what the media product stored; absent: nothing.
	Storage *Storage `json:"storage,omitempty"`
}

// Storage is what the media product stored of an account, looked at every hour.
type Storage struct {
	Most   int64 `json:"most_bytes"` // at a time in the period
	GBDays int64 `json:"gb_days"`    // 10^9 bytes for a day: the most bytes of each day, summed and rounded up
}

// Metered is how much of m was used.
func (u Usage) Metered(m price.Metric) int64 {
	switch m {
	case price.Requests:
		return u.Requests.Requests - u.Requests.Refused
	case price.Tokens:
		return u.Tokens.Total
	case price.PromptTokens:
		return u.Tokens.Prompt
	case price.CompletionTokens:
		return u.Tokens.Completion
	case price.ConnectionMinutes:
		return int64(math.Ceil(u.Requests.Open / 60))
	case price.BytesOut:
		return u.Requests.Out
	case price.StorageGBDays:
		if u.Storage != nil {
			return u.Storage.GBDays
		}
	}
	return 0
}

// storage reads what was stored in a period.
func (s Store) storage(ctx context.Context, account string, p Period) (*Storage, error) {
	var found Storage
	err := s.DB.QueryRow(ctx, `SELECT coalesce(max(bytes), 0), ceil(coalesce(sum(bytes), 0) / 1e9)::bigint
		FROM storage_days WHERE account_id = $1 AND day BETWEEN $2 AND $3`, account, p.Start.Time, p.End.Time).Scan(&found.Most, &found.GBDays)
	if err != nil {
		return nil, fmt.Errorf("read what was stored: %w", err)
	}
	if found.Most == 0 {
		return nil, nil
	}
	return &found, nil
}

// Usage reports what an account has used in period p.
func (s Store) Usage(ctx context.Context, account string, p Period) (Usage, error) {
	u := Usage{Period: p, Data: []DayTokens{}}
	err := s.DB.QueryRow(ctx, `SELECT a.plan, b.monthly FROM accounts a LEFT JOIN token_budgets b ON b.plan = a.plan WHERE a.id = $1`, account).
		Scan(&u.Plan, &u.Limit)
	if err != nil {
		return u, postgres.NotFound(err, "find plan")
	}
	rows, _ := s.DB.Query(ctx, `SELECT day, model, sum(requests)::bigint, sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint
		FROM token_usage WHERE account_id = $1 AND day BETWEEN $2 AND $3 GROUP BY day, model ORDER BY day, model`,
		account, p.Start.Time, p.End.Time)
	var d DayTokens
	_, err = pgx.ForEachRow(rows, []any{&d.Day.Time, &d.Model, &d.Requests, &d.Prompt, &d.Completion}, func() error {
		d.Total = d.Prompt + d.Completion
		u.Data = append(u.Data, d)
		u.Tokens.add(d.Tokens)
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("sum usage: %w", err)
	}
	m := usage.Store{DB: s.DB, Now: s.Now}
	if u.Requests, err = m.Sum(ctx, account, p.Start.Time, p.End.AddDate(0, 0, 1)); err != nil {
		return u, err
	}
	if u.Storage, err = s.storage(ctx, account, p); err != nil {
		return u, err
	}
	u.Month, err = m.Month(ctx, account)
	return u, err
}

// add adds o to t.
func (t *Tokens) add(o Tokens) {
	t.Requests += o.Requests
	t.Prompt += o.Prompt
	t.Completion += o.Completion
	t.Total += o.Total
}
