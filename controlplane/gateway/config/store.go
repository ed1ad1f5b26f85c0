package config

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Channel is the Postgres channel on which new versions are announced.
const Channel = "sluice_config"

// DefaultAuthor is the author of a version that nobody has edited.
const DefaultAuthor = "sluice"

// Version is one published configuration.
type Version struct {
	Number    int64     `json:"version"`
	Author    string    `json:"author"`
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	Document  Document  `json:"document"`
}

// Store keeps every version of the configuration.
type Store struct {
	DB     postgres.DB
	Memory *Memory // nil: it reads the newest version each time
}

// Any is the If-Match of a Put that replaces whatever version is there.
const Any int64 = -1

// Latest returns the newest version, or not_found before the first.
func (s Store) Latest(ctx context.Context) (Version, error) {
	v, err := latest(ctx, s.DB, s.Memory)
	if err == nil {
		s.Memory.keep(v)
	}
	return v, err
}

// Put stores d as a new version and announces it. A document equal to the
// newest version's is not stored again: that version is returned.
//
// It fails with precondition_failed when ifMatch is neither Any nor the number
// of the newest version, with invalid_request when d lacks the plan of an
// account, and when its scopes are more than there are bits. Put does not look
// for other faults in d.
func (s Store) Put(ctx context.Context, d Document, author, note string, ifMatch int64) (v Version, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now, err := s.locked(ctx, tx)
		if err != nil {
			return err
		}
		if ifMatch != Any && ifMatch != now.Number {
			return stale(now.Number)
		}
		v, _, err = put(ctx, tx, now, d, author, note)
		return err
	})
	return v, err
}

// Init makes d the configuration unless somebody has already put one. A default
// of an older release, which nobody has edited, is replaced.
func (s Store) Init(ctx context.Context, d Document) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now, err := s.locked(ctx, tx)
		if err != nil {
			return err
		}
		if now.Number != 0 && now.Author != DefaultAuthor { // a release before this one may have stored it
			return scoperegistry.OfferTx(ctx, tx, now.Document.ScopeNames())
		}
		_, _, err = put(ctx, tx, now, d, DefaultAuthor, "default")
		return err
	})
}

// locked returns the newest version, the empty one before the first, after which
// nobody else adds one until tx ends.
func (s Store) locked(ctx context.Context, tx pgx.Tx) (Version, error) {
	if err := lock(ctx, tx); err != nil {
		return Version{}, err
	}
	now, err := latest(ctx, tx, s.Memory)
	if apierror.Code(err) == decision.NotFound {
		return Version{}, nil
	}
	return now, err
}

// lock lets one writer at a time compare with the newest version and add to it,
// so that numbers become visible in their order.
func lock(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `LOCK TABLE config_versions IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return fmt.Errorf("lock configuration: %w", err)
	}
	return nil
}

// put stores d after now, the newest version, and returns it with what it
// changed; now itself when d says the same.
func put(ctx context.Context, tx pgx.Tx, now Version, d Document, author, note string) (Version, []Change, error) {
	changes := Diff(now.Document, d)
	if now.Number != 0 && len(changes) == 0 && same(now.Document, d) {
		return now, nil, nil
	}
	if err := keepsPlans(ctx, tx, d); err != nil {
		return Version{}, nil, err
	}
	if err := setBudgets(ctx, tx, d.Plans); err != nil {
		return Version{}, nil, err
	}
	if _, err := EnsureNumbers(ctx, tx, d); err != nil {
		return Version{}, nil, err
	}
	if err := scoperegistry.OfferTx(ctx, tx, d.ScopeNames()); err != nil {
		return Version{}, nil, err
	}
	if err := setQuotas(ctx, tx, d.Plans); err != nil {
		return Version{}, nil, err
	}
	v, err := insert(ctx, tx, Version{Author: author, Note: note, Document: d}, len(changes))
	return v, changes, err
}

func insert(ctx context.Context, tx pgx.Tx, v Version, changes int) (Version, error) {
	js, err := json.Marshal(v.Document)
	if err != nil {
		return v, fmt.Errorf("encode configuration: %w", err)
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO config_versions (author, note, document, changes) VALUES ($1, $2, $3, $4)
		RETURNING version, created_at`, v.Author, v.Note, js, changes).Scan(&v.Number, &v.CreatedAt)
	if err != nil {
		return v, fmt.Errorf("store configuration: %w", err)
	}
	if _, err := tx.Exec(ctx, `SELECT pg_notify($1, $2::text)`, Channel, fmt.Sprint(v.Number)); err != nil {
		return v, fmt.Errorf("announce configuration: %w", err)
	}
	return v, nil
}

// keepsPlans refuses a document that lacks the plan of an account: edges would
// turn that account's keys away.
func keepsPlans(ctx context.Context, tx pgx.Tx, d Document) error {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT plan FROM accounts WHERE NOT plan = ANY($1) ORDER BY plan`, d.PlanNames())
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read plans of accounts: %w", err)
	}
	var details []decision.Detail
	for _, name := range missing {
		details = append(details, decision.Detail{Field: "plans", Issue: "lacks " + name + ", which accounts have", Expected: "every plan in use"})
	}
	return apierror.Invalid(details)
}
