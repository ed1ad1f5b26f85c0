package apikeys

import (
	"context"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Find returns the key whose text is given. It fails with invalid_api_key when
// there is none, or it is revoked, or its account suspended, or the text is none of a key,
// which it then says; and with AUTH_001 when it has expired. The
// look-up is by hash, so its time tells nothing about the secret.
func (s Store) Find(ctx context.Context, text string) (Holder, error) {
	if !apikey.WellFormed(text) {
		return Holder{}, &apierror.Error{Code: decision.InvalidKey, Details: []decision.Detail{apikey.Malformed(text).Detail}}
	}
	hash := apikey.Hash(text)
	return s.holder(ctx, `k.hash = $1`, hash[:])
}

// FindByID is Find for a key that an edge has checked already.
func (s Store) FindByID(ctx context.Context, id string) (Holder, error) {
	return s.holder(ctx, `k.id = $1`, id)
}

// holder finds the one key that meets a condition, and judges whether it works.
func (s Store) holder(ctx context.Context, where string, arg any) (Holder, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+columns+`, a.plan, a.operator
		FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.revoked_at IS NULL AND a.suspended_at IS NULL AND `+where, arg)
	h, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		err = row.Scan(append(h.fields(), &h.Plan, &h.Operator)...)
		h.shown()
		return h, err
	})
	if err = postgres.NotFound(err, "find key"); apierror.Code(err) == decision.NotFound {
		return Holder{}, &apierror.Error{Code: decision.InvalidKey}
	}
	if err != nil {
		return Holder{}, err
	}
	if !h.usable(s.now()) {
		return Holder{}, &apierror.Error{Code: decision.TokenExpired}
	}
	return h, nil
}
