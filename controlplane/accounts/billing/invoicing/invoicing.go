// Package invoicing issues an invoice an account and month of what was metered, by the prices
// of plans, and collects its money.
//
// A month (UTC) is issued a day after its end, when usage that comes late has come. Each day of
// it belongs to the plan that the account was on for the longest part of the day, so that a
// change at midnight gains nothing. The prices are those of the configuration that was in force
// when the month ended: whoever computes an invoice again computes the same.
package invoicing

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/platform/storage/postgres"
)

const (
	// Settle is for how long after its end a month waits for usage that comes late.
	Settle = usage.MaxLate + 30*time.Minute
	// Terms is how long an invoice may be open before it blocks its account.
	Terms = 14 * 24 * time.Hour
	// months is how many past months are looked at: those of a platform that was down.
	months = 3
)

// Prices are those of plans, and the version of the configuration that has them.
type Prices struct {
	Version int64 // 0: there was none
	Plans   map[string]price.Plan
}

// Store issues and collects invoices.
type Store struct {
	DB postgres.DB // required
	// Prices returns those that were in force at a time. Required.
	Prices func(ctx context.Context, at time.Time) (Prices, error)
	// Provider charges what is open. Required by Collect.
	Provider provider.Provider
	Now      func() time.Time // nil: time.Now
}

// now is the time by the clock of s.
func (s Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

// billing is the store of invoices and usage.
func (s Store) billing() billing.Store { return billing.Store{DB: s.DB, Now: s.Now} }

// monthOf is the first moment of t's month.
func monthOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// compute is the invoice of an account for a month, of days until end, with its lines. It has
// no currency when nothing of the month has a price.
func (s Store) compute(ctx context.Context, account string, month, end time.Time, prices Prices) (b billing.Bill, err error) {
	parts, err := s.parts(ctx, account, month, end)
	if err != nil {
		return b, err
	}
	b = billing.Bill{ConfigVersion: prices.Version, Lines: []billing.Line{}}
	b.PeriodStart, b.PeriodEnd = billing.Date{Time: month}, billing.Date{Time: end.AddDate(0, 0, -1)}
	days := month.AddDate(0, 1, 0).AddDate(0, 0, -1).Day()
	for _, part := range parts {
		plan, ok := prices.Plans[part.plan]
		if !ok {
			continue
		}
		used, err := s.billing().Usage(ctx, account, billing.Period{Start: billing.Date{Time: part.start}, End: billing.Date{Time: part.end}})
		if err != nil {
			return b, err
		}
		lines, err := linesOf(part, plan, used, days)
		if err != nil {
			return b, err
		}
		b.Currency = plan.Currency
		for _, l := range lines {
			b.Amount += l.Amount
			b.Lines = append(b.Lines, l)
		}
	}
	return b, nil
}

// part is a run of days of a month on one plan; both days are included.
type part struct {
	plan       string
	start, end time.Time
}

// days is how many days p has.
func (p part) days() int { return int(p.end.Sub(p.start).Hours())/24 + 1 }

// linesOf is what one part of a month of so many days costs: its fee, and what was used in it
// of each thing that has a price.
func linesOf(p part, plan price.Plan, used billing.Usage, days int) (lines []billing.Line, err error) {
	share := price.Share{Days: p.days(), Of: days}
	base := billing.Line{Plan: p.plan, PeriodStart: billing.Date{Time: p.start}, PeriodEnd: billing.Date{Time: p.end}}
	if plan.Monthly > 0 {
		l := base
		l.Metric, l.Description = "fee", "Plan "+p.plan
		l.Quantity, l.Per, l.UnitAmount, l.Amount = int64(share.Days), int64(share.Of), whole(plan.Monthly, plan.Currency), plan.Fee(share)
		lines = append(lines, l)
	}
	for _, m := range price.Metrics {
		unit, ok := plan.Units[m]
		quantity := used.Metered(m)
		if !ok || quantity == 0 {
			continue
		}
		l := base
		l.Metric, l.Description, l.Quantity = string(m), describe(m), quantity
		l.Included = min(unit.IncludedIn(share), quantity)
		l.UnitAmount, l.Per = unit.Amount.String(), unit.Per
		l.Usage = fmt.Sprintf("/v1/billing/usage?from=%s&to=%s", p.start.Format(time.DateOnly), p.end.Format(time.DateOnly))
		if l.Amount, ok = unit.Cost(quantity-l.Included, plan.Currency); !ok {
			return nil, fmt.Errorf("%s of %d cost more than can be written", m, quantity)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// describe is what people read of a metric.
func describe(m price.Metric) string {
	return map[price.Metric]string{
		price.Requests: "Requests", price.Tokens: "Tokens of chat completions", price.PromptTokens: "Tokens of prompts", price.CompletionTokens: "Tokens of answers",
		price.ConnectionMinutes: "Minutes of open connections", price.BytesOut: "Bytes of answers", price.StorageGBDays: "Stored GB, for a day each",
	}[m]
}

// whole writes an amount of the smallest unit in whole units of a currency.
func whole(minor int64, currency string) string {
	if price.Places(currency) == 0 {
		return strconv.FormatInt(minor, 10)
	}
	return fmt.Sprintf("%d.%02d", minor/100, minor%100)
}

// parts are the days of a month until end, by the plan of each. Days before the account was
// made are in none.
func (s Store) parts(ctx context.Context, account string, month, end time.Time) ([]part, error) {
	var h history
	err := s.DB.QueryRow(ctx, `SELECT created_at, plan FROM accounts WHERE id = $1`, account).Scan(&h.created, &h.plan)
	if err != nil {
		return nil, postgres.NotFound(err, "find account")
	}
	rows, _ := s.DB.Query(ctx, `SELECT plan, until FROM account_plans WHERE account_id = $1 AND until > $2 ORDER BY until, number`, account, month)
	h.left, err = pgx.CollectRows(rows, pgx.RowToStructByPos[left])
	if err != nil {
		return nil, fmt.Errorf("read plans of before: %w", err)
	}
	return h.parts(month, end), nil
}

// history is which plans an account was on.
type history struct {
	created time.Time
	left    []left // oldest first
	plan    string // now
}

// left is a plan that an account was on until a time.
type left struct {
	Plan  string
	Until time.Time
}

// parts are the days from start to end, end not included, by the plan of each.
func (h history) parts(start, end time.Time) (list []part) {
	for day := start; day.Before(end); day = day.AddDate(0, 0, 1) {
		next := day.AddDate(0, 0, 1)
		if !h.created.Before(next) {
			continue
		}
		plan := h.of(day, next)
		if n := len(list); n > 0 && list[n-1].plan == plan {
			list[n-1].end = day
			continue
		}
		list = append(list, part{plan, day, day})
	}
	return list
}

// of is the plan on which the account was longest between two times; of several, the last.
func (h history) of(from, to time.Time) string {
	long, best := map[string]time.Duration{}, ""
	at := from
	for _, l := range append(append([]left{}, h.left...), left{h.plan, to}) {
		if !l.Until.After(at) || !at.Before(to) {
			continue
		}
		until := l.Until
		if until.After(to) {
			until = to
		}
		long[l.Plan] += until.Sub(at)
		if best == "" || long[l.Plan] >= long[best] {
			best = l.Plan
		}
		at = until
	}
	return best
}
