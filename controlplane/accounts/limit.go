package accounts

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Limit is how many requests of a rate class an account may make in any 60
// seconds, where that differs from its plan.
type Limit struct {
	Class     string `json:"class"`
	PerMinute int    `json:"per_minute"`
}

// MaxPerMinute is the highest limit: what an edge can count.
const MaxPerMinute = 1_000_000_000

var classForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// check returns every fault of l at once.
func (l Limit) check() error {
	var details []decision.Detail
	if !classForm.MatchString(l.Class) {
		details = append(details, decision.Detail{Field: "class", Issue: "is not valid", Expected: "the name of a rate class"})
	}
	if l.PerMinute < 1 || l.PerMinute > MaxPerMinute {
		details = append(details, decision.Detail{Field: "per_minute", Issue: "is out of range",
			Expected: fmt.Sprintf("an integer from 1 to %d", MaxPerMinute)})
	}
	return apierror.Invalid(details)
}

// Limits lists the limits of an account, by class.
func (s Store) Limits(ctx context.Context, account string) ([]Limit, error) {
	if _, err := s.Get(ctx, account); err != nil {
		return nil, err
	}
	rows, _ := s.DB.Query(ctx, `SELECT class, per_minute FROM account_limits WHERE account_id = $1 ORDER BY class`, account)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Limit])
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	return list, nil
}

// SetLimit sets a limit of an account, at the edges too. The account's first
// limit also marks its keys, so that edges look for limits of no other account.
func (s Store) SetLimit(ctx context.Context, account string, l Limit) error {
	if err := l.check(); err != nil {
		return err
	}
	return s.changeLimits(ctx, account, func(tx pgx.Tx, number uint64) error {
		err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "limit.set", Target: l.Class, After: l})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO account_limits (account_id, class, per_minute) VALUES ($1, $2, $3)
			ON CONFLICT (account_id, class) DO UPDATE SET per_minute = excluded.per_minute`, account, l.Class, l.PerMinute)
		if err != nil {
			return fmt.Errorf("set limit: %w", err)
		}
		return keyfeed.PutTx(ctx, tx, keytable.Record{Tag: keytable.TagOfLimit(number, l.Class), Kind: keytable.KindLimit,
			Account: number, Limit: uint32(l.PerMinute)})
	})
}

// RemoveLimit takes a limit away: the plan's counts again. It fails with
// not_found when there is none.
func (s Store) RemoveLimit(ctx context.Context, account, class string) error {
	return s.changeLimits(ctx, account, func(tx pgx.Tx, number uint64) error {
		tag, err := tx.Exec(ctx, `DELETE FROM account_limits WHERE account_id = $1 AND class = $2`, account, class)
		if err != nil {
			return fmt.Errorf("remove limit: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return &apierror.Error{Code: decision.NotFound}
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "limit.remove", Target: class})
		if err != nil {
			return err
		}
		return keyfeed.DeleteTx(ctx, tx, keytable.TagOfLimit(number, class))
	})
}

// changeLimits runs change with the account locked, and sends the account's
// keys again if it now has limits and had none, or the other way round.
func (s Store) changeLimits(ctx context.Context, account string, change func(tx pgx.Tx, number uint64) error) error {
	number, ok := keytable.ParseID(keytable.AccountPrefix, account)
	if !ok {
		return &apierror.Error{Code: decision.NotFound}
	}
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := lock(ctx, tx, account); err != nil {
			return err
		}
		before, err := limited(ctx, tx, account)
		if err != nil {
			return err
		}
		if err := change(tx, number); err != nil {
			return err
		}
		after, err := limited(ctx, tx, account)
		if err != nil || before == after {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, account)
	})
}

// limited reports whether the account has limits of its own.
func limited(ctx context.Context, tx pgx.Tx, account string) (has bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM account_limits WHERE account_id = $1)`, account).Scan(&has)
	if err != nil {
		return false, fmt.Errorf("look for limits: %w", err)
	}
	return has, nil
}
