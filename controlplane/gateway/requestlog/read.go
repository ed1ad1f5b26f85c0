package requestlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Filter says which requests to list.
type Filter struct {
	// Account is whose; empty: everybody's, those of callers whom nobody knows
	// included.
	Account string
	// StatusFrom and StatusTo bound the status, both included. Both 0: any.
	StatusFrom, StatusTo int
	Failed               bool // a status of 400 or more
	Route, Product       string
	Key, Method          string
	// Would is the code with which it would have been refused, if its route did not have
	// that in the shadow; AnyWould: any.
	Would        string
	Since, Until time.Time // by their end; zero: not bounded
	Before       Cursor    // zero: from the newest on
	Limit        int
}

// AnyWould is every code of Filter.Would.
const AnyWould = "any"

// Cursor is a place in a list: before the request of an id that ended then.
type Cursor struct {
	EndedAt time.Time
	ID      string
}

// Page is a part of a list, newest first.
type Page struct {
	Data []Request
	// Next is where the next page begins; nil: there is none. A page may be short, or
	// empty, and have a next one: a list looks at a bounded number of requests.
	Next *Cursor
	// Dropped is how many more failed since the beginning of the oldest slot, and were
	// not recorded as there was no room.
	Dropped int64
}

// query collects conditions and their arguments.
type query struct {
	where []string
	args  []any
}

func (q *query) and(condition string, args ...any) {
	for _, a := range args {
		q.args = append(q.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(q.args)), 1)
	}
	q.where = append(q.where, condition)
}

const columns = `ended_at, edge, record`

// List reads a page. It looks at scanAtOnce rows at most, whatever the filter; an
// account and failures have indexes of their own.
func (s Store) List(ctx context.Context, f Filter) (p Page, err error) {
	inner, outer := f.conditions(s.now())
	args := inner.args
	window := fmt.Sprintf(`SELECT * FROM request_log WHERE %s ORDER BY ended_at DESC, id DESC LIMIT %d`, strings.Join(inner.where, " AND "), scanAtOnce)
	inner.where = nil
	text := fmt.Sprintf(`SELECT %s FROM (%s) w%s ORDER BY ended_at DESC, id DESC LIMIT %d`, columns, window, outer(&inner), f.Limit+1)
	rows, _ := s.DB.Query(ctx, text, inner.args...)
	if p.Data, err = pgx.CollectRows(rows, s.scan); err != nil {
		return p, fmt.Errorf("list requests: %w", err)
	}
	if len(p.Data) > f.Limit {
		p.Data = p.Data[:f.Limit]
		last := p.Data[f.Limit-1]
		p.Next = &Cursor{last.EndedAt, last.ID}
	} else if p.Next, err = s.endOf(ctx, window, args); err != nil {
		return p, err
	}
	p.Dropped, err = s.dropped(ctx, f.Account)
	return p, err
}

// conditions are those of the rows to look at, which indexes find, and those by which
// they are chosen.
func (f Filter) conditions(now time.Time) (inner query, outer func(*query) string) {
	since := now.Add(-Kept)
	if f.Since.After(since) {
		since = f.Since
	}
	inner.and("ended_at > ?", since)
	if !f.Until.IsZero() {
		inner.and("ended_at < ?", f.Until)
	}
	if f.Before.ID != "" {
		inner.and("(ended_at, id) < (?, ?)", f.Before.EndedAt, f.Before.ID)
	}
	if f.Account != "" {
		inner.and("account_id = ?", f.Account)
	}
	if f.Failed || f.StatusFrom >= 400 {
		inner.and("status >= 400")
	}
	return inner, func(q *query) string {
		if f.StatusTo > 0 {
			q.and("status BETWEEN ? AND ?", f.StatusFrom, f.StatusTo)
		}
		for column, value := range map[string]string{"route": f.Route, "product": f.Product, "key_id": f.Key, "method": f.Method} {
			if value != "" {
				q.and(column+" = ?", value)
			}
		}
		switch f.Would {
		case "":
		case AnyWould:
			q.and("record ->> 'would_refuse' IS NOT NULL")
		default:
			q.and("record ->> 'would_refuse' = ?", f.Would)
		}
		if len(q.where) == 0 {
			return ""
		}
		return " WHERE " + strings.Join(q.where, " AND ")
	}
}

// endOf is where a window of scanAtOnce rows ends; nil: it has fewer, so that there is
// nothing after it.
func (s Store) endOf(ctx context.Context, window string, args []any) (*Cursor, error) {
	var c Cursor
	err := s.DB.QueryRow(ctx, fmt.Sprintf(`SELECT ended_at, id FROM (%s) w ORDER BY ended_at DESC, id DESC OFFSET %d`, window, scanAtOnce-1), args...).Scan(&c.EndedAt, &c.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return &c, nil
}

// dropped is how many requests of an account, or of everybody, were not recorded.
func (s Store) dropped(ctx context.Context, account string) (n int64, err error) {
	err = s.DB.QueryRow(ctx, `SELECT coalesce(sum(dropped), 0)::bigint FROM request_log_shares WHERE $1 = '' OR account_id = $1`, account).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count requests that were not recorded: %w", err)
	}
	return n, nil
}

// Get reads a request, which must be the account's unless that is empty. It fails with
// not_found.
func (s Store) Get(ctx context.Context, account, id string) (Request, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+columns+` FROM request_log WHERE id = $1 AND ended_at > $2 AND ($3 = '' OR account_id = $3) LIMIT 1`, id, s.now().Add(-Kept), account)
	r, err := pgx.CollectExactlyOneRow(rows, s.scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, apierror.Errorf(decision.NotFound, "No request %s is recorded. Failed requests and a sample of the others are kept for a day.", decision.Cut(id, decision.MaxName))
	}
	return r, err
}

// scan reads a row of columns.
func (s Store) scan(row pgx.CollectableRow) (r Request, err error) {
	var record []byte
	if err := row.Scan(&r.EndedAt, &r.Edge, &record); err != nil {
		return r, err
	}
	var st stored
	if err := json.Unmarshal(record, &st); err != nil {
		return r, fmt.Errorf("read a request: %w", err)
	}
	r.Request, r.PathTemplate, r.Class, r.EndedAt = st.Request, st.PathTemplate, st.Class, r.EndedAt.UTC()
	return s.explained(r), nil
}
