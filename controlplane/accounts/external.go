package accounts

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// IsExternalID reports whether an account may be called by name in another system: 1
// to apikeys.MaxExternalID characters that are an account's name too.
func IsExternalID(name string) bool {
	return utf8.RuneCountInString(name) <= apikeys.MaxExternalID && len(checkName(name)) == 0
}

// External returns the ids of the accounts that an import made, by what the system
// that they come from calls them.
func (s Store) External(ctx context.Context, names []string) (map[string]string, error) {
	rows, _ := s.DB.Query(ctx, `SELECT external_id, account_id FROM account_external_ids WHERE external_id = ANY ($1)`, names)
	ids, name, id := map[string]string{}, "", ""
	_, err := pgx.ForEachRow(rows, []any{&name, &id}, func() error { ids[name] = id; return nil })
	if err != nil {
		return nil, fmt.Errorf("find accounts by external ids: %w", err)
	}
	return ids, nil
}

// errThere says that another import made the account first.
var errThere = errors.New("the account is there")

// CreateExternal makes an account for what another system calls name, and returns its
// id; made is false when there is one already. It fails with invalid_request for an
// unknown plan.
func (s Store) CreateExternal(ctx context.Context, name, plan string) (id string, made bool, err error) {
	if err := apierror.Invalid(append(checkName(name), checkPlan(plan)...)); err != nil {
		return "", false, err
	}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		a, err := one(ctx, tx, "create account", `INSERT INTO accounts (id, name, plan) VALUES ($1, $2, $3) RETURNING `+columns,
			NewID(keytable.AccountPrefix), name, plan)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO account_external_ids (external_id, account_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, a.ID)
		if err != nil {
			return fmt.Errorf("name account: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errThere
		}
		id = a.ID
		after := map[string]any{"account": a, "external_id": name}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: a.ID, Action: "account.create", Target: a.ID, After: after}); err != nil {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, a.ID)
	})
	if errors.Is(err, errThere) {
		ids, err := s.External(ctx, []string{name})
		return ids[name], false, err
	}
	return id, err == nil, err
}
