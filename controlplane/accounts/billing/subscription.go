package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Subscription is what an account has taken.
type Subscription struct {
	Plan   string `json:"plan"`
	Status string `json:"status"` // active, or unpaid while an overdue invoice blocks the account
}

// Subscription returns that of an account.
func (s Store) Subscription(ctx context.Context, account string) (sub Subscription, err error) {
	err = s.DB.QueryRow(ctx, `SELECT plan, CASE WHEN unpaid THEN 'unpaid' ELSE 'active' END FROM accounts WHERE id = $1`, account).
		Scan(&sub.Plan, &sub.Status)
	return sub, postgres.NotFound(err, "get subscription")
}

// Subscribe moves an account to another plan, at the edges too. It fails with
// invalid_request for a plan that is not for everyone to take.
func (s Store) Subscribe(ctx context.Context, account, plan string) (Subscription, error) {
	var offered bool
	err := s.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM plans WHERE name = $1 AND self_serve)`, plan).Scan(&offered)
	if err != nil {
		return Subscription{}, fmt.Errorf("look for the plan: %w", err)
	}
	if !offered {
		return Subscription{}, apierror.Invalid([]decision.Detail{{Field: "plan", Issue: "is not a plan that can be taken here",
			Expected: "one of the plans on offer; the operator gives others"}})
	}
	if _, err := (accounts.Store{DB: s.DB}).Update(ctx, account, accounts.Change{Plan: &plan}); err != nil {
		return Subscription{}, err
	}
	return s.Subscription(ctx, account)
}

// Plan is a plan as operators see it.
type Plan struct {
	Name      string `json:"name"`
	SelfServe bool   `json:"self_serve"` // customers may take it themselves
}

// Plans lists all plans, by name.
func (s Store) Plans(ctx context.Context) ([]Plan, error) {
	rows, _ := s.DB.Query(ctx, `SELECT name, self_serve FROM plans ORDER BY name`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Plan])
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	return list, nil
}

// SetSelfServe says whether customers may take a plan themselves.
func (s Store) SetSelfServe(ctx context.Context, p Plan) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE plans SET self_serve = $2 WHERE name = $1`, p.Name, p.SelfServe)
		if err != nil {
			return fmt.Errorf("offer plan: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return &apierror.Error{Code: decision.NotFound}
		}
		return audit.RecordTx(ctx, tx, audit.Change{Action: "plan.offer", Target: p.Name, After: p})
	})
}
