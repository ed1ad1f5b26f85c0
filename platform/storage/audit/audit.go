// Package audit records who changed what, from where, in the transaction of the
// change: there is no change without its entry, and no entry without its change.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// System is the actor of changes that nobody asked for over HTTP.
const System = "system"

// Change is what a writer says about a change. Before and After become JSON;
// nil where there is nothing. They must not hold secrets.
type Change struct {
	Actor         string // who; empty: the caller in the context, else System
	Account       string // whose thing it is; empty: the platform's
	Action        string // thing.verb, such as key.revoke
	Target        string // id of the thing
	Before, After any
}

// Entry is one line of the log.
type Entry struct {
	ID        int64           `json:"id"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	Address   string          `json:"address"`
	RequestID string          `json:"request_id"`
	Account   *string         `json:"account"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
}

// origin is from where a request comes.
type origin struct{ address, requestID string }

// contextKey is under what a context has its origin.
type contextKey struct{}

// Middleware puts into the context from where a request comes; who makes it is
// the identity there. address tells the network address of the caller.
func Middleware(address func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o := origin{address(r), httpapi.RequestID(r)}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, o)))
		})
	}
}

// RecordTx adds an entry when tx commits. Actor and origin come from ctx.
func RecordTx(ctx context.Context, tx pgx.Tx, c Change) error {
	before, err := encode(c.Before)
	if err != nil {
		return err
	}
	after, err := encode(c.After)
	if err != nil {
		return err
	}
	actor := System
	if caller, ok := identity.From(ctx); ok {
		actor = caller.Key
	}
	actor = cmp.Or(c.Actor, actor)
	o, _ := ctx.Value(contextKey{}).(origin)
	_, err = tx.Exec(ctx, `INSERT INTO audit_log (actor, address, request_id, account_id, action, target, before, after)
		VALUES ($1, $2, $3, nullif($4, ''), $5, $6, $7, $8)`,
		actor, o.address, o.requestID, c.Account, c.Action, c.Target, before, after)
	if err != nil {
		return fmt.Errorf("record %s: %w", c.Action, err)
	}
	return nil
}

// encode gives nil for nil, so that the column is NULL and not JSON's null.
func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// Filter says which entries are wanted; empty fields want all.
type Filter struct{ Account, Actor, Action, Target string }

// Table is how the log is listed: newest first.
var Table = paging.Table[Entry]{
	Columns: `id, at, actor, address, request_id, account_id, action, target, before, after`, From: "audit_log",
	Scan: func(row pgx.CollectableRow) (Entry, error) {
		e, err := pgx.RowToStructByPos[Entry](row)
		e.At = e.At.UTC()
		return e, err
	},
	Sorts: []paging.Sort[Entry]{paging.Time("at", "at", func(e Entry) time.Time { return e.At })},
	ID:    "id", IDOf: func(e Entry) string { return strconv.FormatInt(e.ID, 10) }, Numbered: true,
	Created: "at",
}

// Read returns page p of the entries.
func Read(ctx context.Context, db postgres.DB, f Filter, p paging.Page) (paging.List[Entry], error) {
	where, args := "true", []any{}
	for _, by := range []struct{ column, value string }{{"account_id", f.Account}, {"actor", f.Actor}, {"action", f.Action}, {"target", f.Target}} {
		if by.value != "" { // a condition of its own, so that the plan can go by its index
			args = append(args, by.value)
			where += fmt.Sprintf(" AND %s = $%d", by.column, len(args))
		}
	}
	return Table.Read(ctx, db, p, where, args...)
}
