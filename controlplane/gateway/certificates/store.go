package certificates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

const shown = `name, source, hosts, issuer, fingerprint, not_before, not_after, renew_at, attempts, next_attempt_at, last_error, asked_when_at`

// List returns all certificates by name, without their chains.
func (s Store) List(ctx context.Context) ([]Certificate, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+shown+`, NULL::text AS chain FROM certificates ORDER BY name`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Certificate])
	if err != nil {
		return nil, fmt.Errorf("list certificates: %w", err)
	}
	for i := range list {
		list[i].stateAt(s.now())
	}
	return list, nil
}

// Get returns one with its chain, or not_found.
func (s Store) Get(ctx context.Context, name string) (Certificate, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+shown+`, chain FROM certificates WHERE name = $1`, name)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Certificate])
	if err != nil {
		return c, notFound(err, "read a certificate")
	}
	c.stateAt(s.now())
	return c, nil
}

func notFound(err error, doing string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return &apierror.Error{Code: decision.NotFound}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// change does f in a transaction that is alone with the table, and announces it.
func (s Store) change(ctx context.Context, f func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE certificates IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("lock certificates: %w", err)
		}
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT pg_notify($1, '')`, Channel)
		return err
	})
}

// Upload stores a certificate that an operator has, in place of the one of its name
// if that was uploaded as well.
func (s Store) Upload(ctx context.Context, name string, p Pair) (Certificate, error) {
	err := s.change(ctx, func(tx pgx.Tx) error {
		var source string
		err := tx.QueryRow(ctx, `SELECT source FROM certificates WHERE name = $1`, name).Scan(&source)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("look for a certificate: %w", err)
		}
		if source == SourceACME {
			return apierror.Errorf(decision.Conflict, "The configuration has a certificate of that name.")
		}
		if source == "" {
			var uploaded int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM certificates WHERE source = $1`, SourceUploaded).Scan(&uploaded); err != nil {
				return fmt.Errorf("count certificates: %w", err)
			}
			if uploaded >= MaxUploaded {
				return apierror.Errorf(decision.Conflict, "There are %d uploaded certificates already: remove one.", MaxUploaded)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO certificates (name, source, hosts) VALUES ($1, $2, $3)`, name, SourceUploaded, p.Hosts); err != nil {
				return fmt.Errorf("add a certificate: %w", err)
			}
		}
		if err := s.fill(ctx, tx, name, p, p.Hosts, nil); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Action: "certificate.upload", Target: name,
			After: map[string]any{"hosts": p.Hosts, "fingerprint": fingerprint(p.Leaf), "not_after": p.Leaf.NotAfter}})
	})
	if err != nil {
		return Certificate{}, err
	}
	return s.Get(ctx, name)
}

// fill writes the whole of a certificate into its row. This is the one statement by
// which a certificate comes into force.
func (s Store) fill(ctx context.Context, tx pgx.Tx, name string, p Pair, hosts []string, renewAt *time.Time) error {
	tag, err := tx.Exec(ctx, `UPDATE certificates SET hosts = $2, chain = $3, private_key = $4, fingerprint = $5, issuer = $6, not_before = $7, not_after = $8,
		renew_at = $9, asked_when_at = NULL, attempts = 0, last_error = NULL, next_attempt_at = now(), updated_at = now()
		WHERE name = $1 AND (source = $10 OR hosts = $2)`,
		name, hosts, string(p.Chain), s.Box.Seal(p.Key, rowOf(name)), fingerprint(p.Leaf), decision.Cut(p.Leaf.Issuer.String(), 200), p.Leaf.NotBefore, p.Leaf.NotAfter, renewAt, SourceUploaded)
	if err != nil {
		return fmt.Errorf("store a certificate: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errGone
	}
	return nil
}

// errGone says that the configuration no longer asks for such a certificate.
var errGone = errors.New("the configuration no longer asks for this certificate")

// Remove takes away an uploaded certificate.
func (s Store) Remove(ctx context.Context, name string) error {
	return s.change(ctx, func(tx pgx.Tx) error {
		var source string
		err := tx.QueryRow(ctx, `DELETE FROM certificates WHERE name = $1 RETURNING source`, name).Scan(&source)
		if err != nil {
			return notFound(err, "remove a certificate")
		}
		if source == SourceACME {
			return apierror.Errorf(decision.Conflict, "The configuration asks for this certificate: take it out of `certificates` there.")
		}
		return audit.RecordTx(ctx, tx, audit.Change{Action: "certificate.remove", Target: name})
	})
}

// RenewNow has an issued certificate renewed at once, also one whose last attempt failed.
func (s Store) RenewNow(ctx context.Context, name string) (Certificate, error) {
	err := s.change(ctx, func(tx pgx.Tx) error {
		var source string
		err := tx.QueryRow(ctx, `UPDATE certificates SET next_attempt_at = now(), renew_at = now(), asked_when_at = now() WHERE name = $1 RETURNING source`, name).Scan(&source)
		if err != nil {
			return notFound(err, "renew a certificate")
		}
		if source != SourceACME {
			return apierror.Errorf(decision.Conflict, "This certificate was uploaded: upload another one.")
		}
		return audit.RecordTx(ctx, tx, audit.Change{Action: "certificate.renew", Target: name})
	})
	if err != nil {
		return Certificate{}, err
	}
	return s.Get(ctx, name)
}

// want makes the rows of ACME those that the document asks for.
func (s Store) want(ctx context.Context, entries []config.Certificate) error {
	have, err := s.List(ctx)
	if err != nil {
		return err
	}
	known := map[string]Certificate{}
	for _, c := range have {
		known[c.Name] = c
	}
	var names []string
	var change []config.Certificate
	for _, e := range entries {
		names = append(names, e.Name)
		if was, ok := known[e.Name]; !ok || was.Source == SourceACME && !slices.Equal(was.Hosts, e.Hosts) {
			change = append(change, e)
		}
	}
	gone := slices.ContainsFunc(have, func(c Certificate) bool { return c.Source == SourceACME && !slices.Contains(names, c.Name) })
	if len(change) == 0 && !gone {
		return nil
	}
	return s.change(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM certificates WHERE source = $1 AND name <> ALL (coalesce($2, '{}'::text[]))`, SourceACME, names); err != nil {
			return fmt.Errorf("remove certificates: %w", err)
		}
		for _, e := range change {
			if _, err := tx.Exec(ctx, `INSERT INTO certificates (name, source, hosts) VALUES ($1, $2, $3)
				ON CONFLICT (name) DO UPDATE SET hosts = excluded.hosts, next_attempt_at = now(), renew_at = now() WHERE certificates.source = excluded.source`, e.Name, SourceACME, e.Hosts); err != nil {
				return fmt.Errorf("add a certificate: %w", err)
			}
		}
		return nil
	})
}

// issued puts what an authority has issued into force.
func (s Store) issued(ctx context.Context, name string, p Pair, hosts []string, renewAt time.Time) error {
	return s.change(ctx, func(tx pgx.Tx) error { return s.fill(ctx, tx, name, p, hosts, &renewAt) })
}

// failed notes why an attempt failed, and when the next is made.
func (s Store) failed(ctx context.Context, name, why string, next time.Time) error {
	_, err := s.DB.Exec(ctx, `UPDATE certificates SET attempts = attempts + 1, last_error = $2, next_attempt_at = $3, updated_at = now() WHERE name = $1`,
		name, decision.Cut(why, 1000), next)
	return err
}

// renewAt notes when the authority wants a certificate to be renewed; the zero time:
// it did not say.
func (s Store) renewAt(ctx context.Context, name string, at time.Time) error {
	_, err := s.DB.Exec(ctx, `UPDATE certificates SET renew_at = coalesce($2, renew_at), asked_when_at = now() WHERE name = $1`, name, nullable(at))
	return err
}

func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
