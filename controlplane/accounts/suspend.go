package accounts

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// MaxReason is how many characters the reason of a suspension may have.
const MaxReason = 500

// suspendMigration is the first that processes know which heed suspensions.
const suspendMigration = 75

// Suspend keeps an account out until it is resumed: edges refuse its keys, sessions and
// tokens as soon as they refuse a key that is revoked, nobody of it can sign in, its schedules
// do not run, and what is to be delivered to its webhooks waits. Its people read the reason
// when they sign in. Of an account that is suspended it changes the reason.
//
// It fails with invalid_request for a bad reason, and with conflict for the operator's
// account and while a process of the release before runs, which would let the account in.
func (s Store) Suspend(ctx context.Context, id, reason string) (a Account, err error) {
	if err := apierror.Invalid(checkReason(reason)); err != nil {
		return a, err
	}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if before.Operator {
			return apierror.Errorf(decision.Conflict, "The operator's account cannot be suspended: nobody could resume it.")
		}
		if err := checkProcesses(ctx, tx); err != nil {
			return err
		}
		a, err = one(ctx, tx, "suspend account", `UPDATE accounts SET suspended_at = coalesce(suspended_at, now()), suspended_reason = $2
			WHERE id = $1 RETURNING `+columns, id, reason)
		if err != nil {
			return err
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: id, Action: "account.suspend", Target: id, Before: before, After: a}); err != nil {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, id)
	})
	return a, err
}

// Resume lets an account in again: what it had before it was suspended works as it did. An
// account that is not suspended stays as it is.
func (s Store) Resume(ctx context.Context, id string) (a Account, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, id)
		if a = before; err != nil || before.SuspendedAt == nil {
			return err
		}
		a, err = one(ctx, tx, "resume account", `UPDATE accounts SET suspended_at = NULL, suspended_reason = '' WHERE id = $1 RETURNING `+columns, id)
		if err != nil {
			return err
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: id, Action: "account.resume", Target: id, Before: before, After: a}); err != nil {
			return err
		}
		if s.Resumed != nil {
			if err := s.Resumed(ctx, tx, id); err != nil {
				return err
			}
		}
		return apikeys.EmitAccountTx(ctx, tx, id)
	})
	return a, err
}

// lock returns an account, which stays as it is until tx ends.
func lock(ctx context.Context, tx pgx.Tx, id string) (Account, error) {
	return one(ctx, tx, "lock account", `SELECT `+columns+` FROM accounts WHERE id = $1 FOR UPDATE`, id)
}

// checkReason wants one line of text.
func checkReason(reason string) []decision.Detail {
	bad := !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl)
	if n := utf8.RuneCountInString(reason); bad || strings.TrimSpace(reason) == "" || n > MaxReason {
		return []decision.Detail{{Field: "reason", Issue: "is not valid", Expected: fmt.Sprintf("1 to %d characters in one line, which the account's people read when they sign in", MaxReason)}}
	}
	return nil
}

// checkProcesses fails with conflict while a process may run that does not heed suspensions.
func checkProcesses(ctx context.Context, tx pgx.Tx) error {
	var former bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM processes WHERE knows < $1 AND last_seen > now() - interval '1 minute')`, suspendMigration).Scan(&former)
	if err != nil {
		return fmt.Errorf("look for processes of before: %w", err)
	}
	if former {
		return apierror.Errorf(decision.Conflict, "A process of an earlier release is running, which would let the account in: update it first. `sluice status` lists the processes.")
	}
	return nil
}
