package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RolesSQL makes the roles that are missing. Where the owner of the schema may not,
// somebody who may runs it, once for each server; Up then grants.
func RolesSQL() string {
	var b strings.Builder
	for _, r := range Roles {
		fmt.Fprintf(&b, "DO $$ BEGIN CREATE ROLE %s NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;\n", r)
	}
	return b.String()
}

// grantAll brings what each role may do to what Grants says. Roles belong to a
// server, so that those that are there, perhaps for another database, are taken. One
// that is missing and that conn may not make is left out: processes that sign in as
// the owner need none.
func grantAll(ctx context.Context, conn *pgxv5.Conn) error {
	for _, r := range Roles {
		there, err := ensureRole(ctx, conn, r)
		if err == nil && !there {
			slog.WarnContext(ctx, "a role of the database is missing, and this user may not make it: have somebody who may run what `sluice migrate --roles` shows, then `sluice migrate`", "role", string(r))
			continue
		}
		if err == nil {
			err = grant(ctx, conn, r)
		}
		if err != nil {
			return fmt.Errorf("role %s: %w", r, err)
		}
	}
	return nil
}

// Errors of PostgreSQL that are expected here.
const (
	insufficientPrivilege = "42501"
	duplicateObject       = "42710"
	uniqueViolation       = "23505" // two that make the same role at the same time
)

func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// ensureRole reports whether the role is there, which it makes if it can.
func ensureRole(ctx context.Context, conn *pgxv5.Conn, r Role) (there bool, err error) {
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, string(r)).Scan(&there); err != nil || there {
		return there, err
	}
	_, err = conn.Exec(ctx, `CREATE ROLE `+string(r)+` NOLOGIN`)
	switch code(err) {
	case insufficientPrivilege:
		return false, nil
	case duplicateObject, uniqueViolation:
		return true, nil
	}
	return err == nil, err
}

// grant writes nothing when the role has what it should have already.
func grant(ctx context.Context, conn *pgxv5.Conn, r Role) error {
	p, err := lookAt(ctx, conn, r)
	if err != nil {
		return err
	}
	var b strings.Builder
	if !p.uses {
		fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", p.schema, r)
	}
	if p.creates { // PostgreSQL before 15 lets everybody
		fmt.Fprintf(&b, "REVOKE CREATE ON SCHEMA %s FROM PUBLIC;\n", p.schema)
	}
	if want := p.wants(r); !slices.Equal(want, p.held) {
		fmt.Fprintf(&b, "REVOKE ALL ON ALL TABLES IN SCHEMA %[1]s FROM %[2]s; REVOKE ALL ON ALL SEQUENCES IN SCHEMA %[1]s FROM %[2]s;\n", p.schema, r)
		for _, w := range want {
			fmt.Fprintf(&b, "GRANT %s ON %s.%s TO %s;\n", w.sql(), p.schema, w.table, r)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return pgxv5.BeginFunc(ctx, conn, func(tx pgxv5.Tx) error {
		_, err := tx.Exec(ctx, b.String())
		return err
	})
}

func (p privilege) sql() string {
	if p.column == "" {
		return p.name
	}
	return p.name + " (" + p.column + ")"
}

// place is how things stand with a role where the tables are.
type place struct {
	schema        string // quoted
	uses, creates bool
	sequences     []string
	held          []privilege // by the role itself, sorted
}

func lookAt(ctx context.Context, conn *pgxv5.Conn, r Role) (p place, err error) {
	err = conn.QueryRow(ctx, `SELECT quote_ident(current_schema()), has_schema_privilege($1, current_schema(), 'USAGE'), has_schema_privilege($1, current_schema(), 'CREATE'),
		coalesce((SELECT array_agg(relname::text) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S'), '{}')`, string(r)).Scan(&p.schema, &p.uses, &p.creates, &p.sequences)
	if err == nil {
		p.held, err = held(ctx, conn, r)
	}
	return p, err
}

// jobs is the sequence of the one serial column. Who inserts there uses it; identity
// columns need no such right.
const jobs = "river_job_id_seq"

// wants are the privileges that the role should hold there, sorted: those of Grants,
// and what goes with them. A backup notes how far each sequence has come.
func (p place) wants(r Role) []privilege {
	list := privileges(r)
	if r == Backup {
		for _, s := range p.sequences {
			list = append(list, privilege{s, "SELECT", ""})
		}
	} else if slices.Contains(list, privilege{"river_job", "INSERT", ""}) {
		list = append(list, privilege{jobs, "USAGE", ""})
	}
	slices.SortFunc(list, privilege.compare)
	return list
}

// held is what the role has been granted by itself, sorted.
func held(ctx context.Context, conn *pgxv5.Conn, r Role) ([]privilege, error) {
	rows, _ := conn.Query(ctx, `
		SELECT c.relname::text, a.privilege_type, '' FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.relnamespace = current_schema()::regnamespace AND a.grantee = $1::regrole
		UNION ALL
		SELECT c.relname::text, a.privilege_type, t.attname::text
		FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
		WHERE c.relnamespace = current_schema()::regnamespace AND a.grantee = $1::regrole AND NOT t.attisdropped`, string(r))
	list, err := pgxv5.CollectRows(rows, func(row pgxv5.CollectableRow) (p privilege, err error) {
		return p, row.Scan(&p.table, &p.name, &p.column)
	})
	slices.SortFunc(list, privilege.compare)
	return list, err
}
