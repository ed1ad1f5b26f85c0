package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
)

// PlanPrice is what a plan costs: an invoice is issued for each month.
type PlanPrice struct {
	// Currency is three capital letters (ISO 4217), the same for all plans.
	Currency string `json:"currency"`
	// Monthly is the fee of a month, a decimal text such as "29.00". Empty: none.
	Monthly string `json:"monthly,omitempty"`
	// Units are the prices of what is metered, by its name: requests, tokens,
	// prompt_tokens, completion_tokens, connection_minutes, bytes_out, storage_gb_days.
	Units map[string]UnitPrice `json:"units,omitempty"`
}

// UnitPrice is the price of something that is metered.
type UnitPrice struct {
	Amount   string `json:"amount"`             // a decimal text such as "0.40"
	Per      int64  `json:"per,omitempty"`      // how many units Amount is for; 0: 1
	Included int64  `json:"included,omitempty"` // units of a month that cost nothing
}

// Prices are those of the plans that have one, by name.
func (d Document) Prices() map[string]price.Plan {
	all := map[string]price.Plan{}
	for _, p := range d.Plans {
		if p.Price != nil {
			all[p.Name] = p.Price.plan()
		}
	}
	return all
}

// PricesAt are the prices of plans in the version that was in force at a time, and its number;
// 0: there was none.
func (s Store) PricesAt(ctx context.Context, at time.Time) (version int64, prices map[string]price.Plan, err error) {
	var d Document
	err = s.DB.QueryRow(ctx, `SELECT version, coalesce(document->'plans', '[]') FROM config_versions WHERE created_at < $1 ORDER BY version DESC LIMIT 1`, at).
		Scan(&version, &d.Plans)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, fmt.Errorf("read prices: %w", err)
	}
	return version, d.Prices(), nil
}

// plan is p as invoices are computed by it. What does not validate costs nothing.
func (p PlanPrice) plan() price.Plan {
	out := price.Plan{Currency: p.Currency, Units: map[price.Metric]price.Unit{}}
	if fee, err := price.ParseAmount(p.Monthly); err == nil {
		out.Monthly, _ = fee.Minor(p.Currency)
	}
	for name, u := range p.Units {
		if amount, err := price.ParseAmount(u.Amount); err == nil {
			out.Units[price.Metric(name)] = price.Unit{Amount: amount, Per: max(u.Per, 1), Included: u.Included}
		}
	}
	return out
}

// metricNames are those that may have a price, for messages.
var metricNames = func() (text string) {
	for i, m := range price.Metrics {
		text += strings.Repeat(", ", min(i, 1)) + string(m)
	}
	return text
}()

// price checks what a plan costs. first is the currency of the plans before it.
func (v *validator) price(f string, p *PlanPrice, first string) {
	if p == nil {
		return
	}
	switch {
	case !price.Currency(p.Currency):
		v.add(f+".currency", "is not a currency that prices may have", "three capital letters (ISO 4217), of a currency with two decimal places or none")
	case first != "" && p.Currency != first:
		v.add(f+".currency", "is not that of the other plans", first+": an invoice has one currency, and accounts may change their plan")
	}
	if p.Monthly != "" {
		fee, err := price.ParseAmount(p.Monthly)
		if err != nil {
			v.add(f+".monthly", "is not an amount", price.ErrAmount.Error())
		} else if _, whole := fee.Minor(p.Currency); !whole {
			v.add(f+".monthly", "has more decimal places than the currency", fmt.Sprintf("at most %d", price.Places(p.Currency)))
		}
	}
	for _, name := range sorted(p.Units) {
		v.unitPrice(f+".units."+name, name, p.Units[name])
	}
	if _, all := p.Units[string(price.Tokens)]; all {
		for _, part := range []price.Metric{price.PromptTokens, price.CompletionTokens} {
			if _, too := p.Units[string(part)]; too {
				v.add(f+".units."+string(part), "is in tokens already", "a price of tokens, or of prompt_tokens and completion_tokens")
			}
		}
	}
}

// unitPrice checks the price of one metric.
func (v *validator) unitPrice(f, name string, u UnitPrice) {
	if !slices.Contains(price.Metrics, price.Metric(name)) {
		v.add(f, "is not something that is metered", metricNames)
	}
	if _, err := price.ParseAmount(u.Amount); err != nil {
		v.add(f+".amount", "is not an amount", price.ErrAmount.Error())
	}
	if u.Per < 0 {
		v.add(f+".per", "is negative", "how many units the amount is for, or nothing for 1")
	}
	if u.Included < 0 {
		v.add(f+".included", "is negative", "how many units of a month cost nothing, or nothing")
	}
}

// currencyOf is that of the first plan that has one.
func currencyOf(plans []Plan) string {
	for _, p := range plans {
		if p.Price != nil && p.Price.Currency != "" {
			return p.Price.Currency
		}
	}
	return ""
}
