// Package clientcerts revokes client certificates: those with a serial number, of one
// issuer or of any, are refused at every edge whatever their names are mapped to. So
// the certificate of a lost laptop is refused, and the one that replaces it, with the
// same name, is not.
//
// By what certificates let in is for package apikeys.
package clientcerts

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Store keeps the revoked certificates in Postgres.
type Store struct {
	DB postgres.DB
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

func (s Store) now() time.Time { return clock.Or(s.Now) }

// Revoked is one entry.
type Revoked struct {
	ID     string `json:"id"`
	Serial string `json:"serial"` // hexadecimal, without leading zeros
	// Issuer is the name of the authority, in the form of RFC 2253; nil: any.
	Issuer    *string   `json:"issuer"`
	Reason    string    `json:"reason"`
	CreatedAt time.Time `json:"created_at"` // UTC
}

// Of names a certificate as it is revoked. An issuer whose name edges may write in
// another way is left out: the serial number alone counts then.
func Of(cert *x509.Certificate) (serial string, issuer *string) {
	serial = clientcert.Serial(fmt.Sprintf("%x", cert.SerialNumber))
	if name := plainName(cert.RawIssuer); name != "" {
		issuer = &name
	}
	return serial, issuer
}

const columns = `id, serial, issuer, reason, created_at`

func scan(row pgx.CollectableRow) (r Revoked, err error) {
	err = row.Scan(&r.ID, &r.Serial, &r.Issuer, &r.Reason, &r.CreatedAt)
	r.CreatedAt = r.CreatedAt.UTC()
	return r, err
}

// Revoke refuses the certificates with a serial number, of an issuer or, when that is
// nil, of any, and tells the edges. What is revoked already stays as it is.
func (s Store) Revoke(ctx context.Context, serial string, issuer *string, reason string) (r Revoked, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := hold(ctx, tx, serial); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `INSERT INTO revoked_certificates (id, serial, issuer, reason, created_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (serial, coalesce(issuer, '')) DO UPDATE SET serial = excluded.serial RETURNING `+columns,
			ids.New("rcrt_", s.now()), serial, issuer, reason, s.now())
		if r, err = pgx.CollectExactlyOneRow(rows, scan); err != nil {
			return fmt.Errorf("revoke a certificate: %w", err)
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Action: "certificate.revoke", Target: r.ID, After: r}); err != nil {
			return err
		}
		return emit(ctx, tx, serial)
	})
	return r, err
}

// Restore takes an entry away; not_found when there is none with the id.
func (s Store) Restore(ctx context.Context, id string) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		var serial string
		if err := tx.QueryRow(ctx, `SELECT serial FROM revoked_certificates WHERE id = $1`, id).Scan(&serial); err != nil {
			return postgres.NotFound(err, "find a revoked certificate")
		}
		if err := hold(ctx, tx, serial); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `DELETE FROM revoked_certificates WHERE id = $1 RETURNING `+columns, id)
		r, err := pgx.CollectExactlyOneRow(rows, scan)
		if err != nil {
			return postgres.NotFound(err, "restore a certificate")
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Action: "certificate.restore", Target: id, Before: r}); err != nil {
			return err
		}
		return emit(ctx, tx, serial)
	})
}

// List is how revoked certificates are listed: newest first.
var List = paging.Table[Revoked]{
	Columns: columns, From: "revoked_certificates", Scan: scan,
	Sorts: []paging.Sort[Revoked]{paging.Time("created_at", "created_at", func(r Revoked) time.Time { return r.CreatedAt })},
	ID:    "id", IDOf: func(r Revoked) string { return r.ID },
	Created: "created_at",
}

// Page returns page p of the entries.
func (s Store) Page(ctx context.Context, p paging.Page) (paging.List[Revoked], error) {
	return List.Read(ctx, s.DB, p, `true`)
}

// hold keeps others from the entries of a serial number, which have one record, until tx
// ends.
func hold(ctx context.Context, tx pgx.Tx, serial string) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('revoked certificate ' || $1, 0))`, serial); err != nil {
		return fmt.Errorf("hold a serial number: %w", err)
	}
	return nil
}

// emit sends the record of a serial number to edges.
func emit(ctx context.Context, tx pgx.Tx, serial string) error {
	rows, _ := tx.Query(ctx, `SELECT coalesce(issuer, '') FROM revoked_certificates WHERE serial = $1 ORDER BY issuer LIMIT 10`, serial)
	issuers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the issuers of a serial number: %w", err)
	}
	if len(issuers) == 0 {
		return keyfeed.DeleteTx(ctx, tx, clientcert.TagOfRevoked(serial))
	}
	return keyfeed.PutTx(ctx, tx, clientcert.Revoked(serial, issuers))
}
