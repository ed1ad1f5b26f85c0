package paging

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
)

// Table says how a list is read from the database, and what callers may ask of it.
//
// A page is found by the value of its order and the id of the row before it: it costs as much at
// the end of a list as at its beginning, and rows that come in while a caller goes through the
// pages neither repeat nor hide others. Each order, and each bound of time, must have an index that
// begins with the columns by which the list is always narrowed, such as the account.
type Table[T any] struct {
	Columns string // of SELECT
	From    string // table, alias and joins; no two lists may have the same one unless cursors of one make sense in the other
	Scan    pgx.RowToFunc[T]
	Sorts   []Sort[T] // that callers may ask for; the first is the usual one, which must not be a text
	// Ascending says that the usual order is from the least on, not from the greatest.
	Ascending bool
	// ID is a column that is unique within a list, and IDOf its value. Empty: the column of each
	// sort is.
	ID   string
	IDOf func(T) string
	// Numbered says that ID is a whole number.
	Numbered bool
	// Created is the column that created_after and created_before bound; empty: nothing does.
	Created string
	// Name is the column by whose beginning callers may narrow the list, and Param the name of the
	// parameter; empty: none.
	Name, Param string
	// Log says that the list grows without end, so that it is neither counted nor reached by offset.
	Log bool
	// Camel says that parameters are named in camelCase, as the Events API has it.
	Camel bool
}

// Sort is an order that a list can have, as callers name it, by a column and then by the id.
type Sort[T any] struct {
	name, column string
	kind         kind
	of           func(T) string
}

type kind int

const (
	moment kind = iota
	number
	text
)

// Time is an order by a time, which the database has to the microsecond.
func Time[T any](name, column string, of func(T) time.Time) Sort[T] {
	return Sort[T]{name, column, moment, func(row T) string { return strconv.FormatInt(of(row).UnixMicro(), 10) }}
}

// Number is an order by a whole number.
func Number[T any](name, column string, of func(T) int64) Sort[T] {
	return Sort[T]{name, column, number, func(row T) string { return strconv.FormatInt(of(row), 10) }}
}

// Text is an order by a text, whatever its case, byte by byte: that of an index of
// lower(column) COLLATE "C".
func Text[T any](name, column string, of func(T) string) Sort[T] {
	return Sort[T]{name, column, text, of}
}

func (s Sort[T]) expression() string {
	if s.kind == text {
		return folded(s.column)
	}
	return s.column
}

func folded(of string) string { return `lower(` + of + `) COLLATE "C"` }

// Parse reads what a request asks of the list: limit, cursor and sort, offset unless it is a Log, and
// what bounds names and times. The details name every one that is not valid.
//
// It takes time and memory linear in those values.
func (t Table[T]) Parse(q url.Values) (Page, []decision.Detail) { return t.offer().parse(q) }

func (t Table[T]) offer() offer {
	o := offer{list: t.From, numbered: t.Numbered, log: t.Log, timed: t.Created != "", name: t.Param, after: "created_after", before: "created_before"}
	if t.Camel {
		o.after, o.before = "createdAfter", "createdBefore"
	}
	for _, s := range t.Sorts {
		o.sorts = append(o.sorts, s.name)
		switch s.kind {
		case moment:
			o.moments = append(o.moments, s.name)
		case number:
			o.numbers = append(o.numbers, s.name)
		case text:
		}
	}
	return o
}

// order is the sort of a page, and whether it is from the greatest on.
func (t Table[T]) order(p Page) (s Sort[T], descending bool) {
	name, reverse := strings.CutPrefix(p.Sort, "-")
	for _, s := range t.Sorts {
		if s.name == name {
			return s, reverse
		}
	}
	return t.Sorts[0], !t.Ascending
}

// DB runs queries: a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Read reads page p of the rows for which where, with args as $1 and so on, is true.
func (t Table[T]) Read(ctx context.Context, db DB, p Page, where string, args ...any) (l List[T], err error) {
	sql, all := t.Statement(p, where, args...)
	rows, _ := db.Query(ctx, sql, all...)
	if l.Data, err = pgx.CollectRows(rows, t.Scan); err != nil {
		return List[T]{}, fmt.Errorf("list %s: %w", t.From, err)
	}
	total := 0
	if !t.Log {
		conditions, all := t.conditions(p, where, args)
		if err := db.QueryRow(ctx, `SELECT count(*) FROM `+t.From+conditions, all...).Scan(&total); err != nil {
			return List[T]{}, fmt.Errorf("count %s: %w", t.From, err)
		}
	}
	return t.Cut(p, l.Data, total), nil
}

// Cut makes page p out of rows, which are one more than it holds if there is another page; total
// is how many there are in all, unless the list is a Log.
func (t Table[T]) Cut(p Page, rows []T, total int) List[T] {
	l := List[T]{Data: rows, Pagination: Info{Limit: p.Limit, HasMore: len(rows) > p.Limit}}
	if l.Pagination.HasMore {
		l.Data = rows[:p.Limit]
		next := t.cursorAfter(l.Data[p.Limit-1], p)
		l.Pagination.NextCursor = &next
	}
	if l.Data == nil {
		l.Data = []T{}
	}
	if !t.Log {
		l.Pagination.Total, l.Pagination.Offset = &total, &p.Offset
	}
	return l
}

// cursorAfter is the cursor of the page after the one of p that ends with row.
func (t Table[T]) cursorAfter(row T, p Page) string {
	s, descending := t.order(p)
	name := s.name
	if descending {
		name = "-" + name
	}
	at := Place{Value: s.of(row)}
	if t.ID != "" {
		at.ID = t.IDOf(row)
	}
	return t.offer().write(name, at)
}

// Statement is what Read asks the database for the rows of p: one more than the page holds, if there
// is one, so that it knows whether there is another page.
func (t Table[T]) Statement(p Page, where string, args ...any) (sql string, all []any) {
	conditions, all := t.conditions(p, where, args)
	s, descending := t.order(p)
	direction, compare := "", ">"
	if descending {
		direction, compare = " DESC", "<"
	}
	bind := func(v any) string {
		all = append(all, v)
		return "$" + strconv.Itoa(len(all))
	}
	if p.After != (Place{}) {
		place := t.place(s, p.After, bind)
		conditions += ` AND ` + place.columns + ` ` + compare + ` ` + place.values
	}
	by := s.expression() + direction
	if t.ID != "" {
		by += `, ` + t.ID + direction
	}
	sql = `SELECT ` + t.Columns + ` FROM ` + t.From + conditions + ` ORDER BY ` + by + ` LIMIT ` + bind(p.Limit+1)
	if p.Offset > 0 {
		sql += ` OFFSET ` + bind(p.Offset)
	}
	return sql, all
}

// compared are the two sides by which rows after a place are found.
type compared struct{ columns, values string }

func (t Table[T]) place(s Sort[T], at Place, bind func(any) string) compared {
	value := ""
	switch n, _ := strconv.ParseInt(at.Value, 10, 64); s.kind {
	case moment:
		value = bind(time.UnixMicro(n).UTC()) + `::timestamptz`
	case number:
		value = bind(n) + `::bigint`
	case text:
		value = folded(bind(at.Value) + `::text`)
	}
	if t.ID == "" {
		return compared{s.expression(), value}
	}
	id := bind(at.ID) + `::text`
	if t.Numbered {
		id += `::bigint`
	}
	return compared{`(` + s.expression() + `, ` + t.ID + `)`, `(` + value + `, ` + id + `)`}
}

// conditions are those of all pages.
func (t Table[T]) conditions(p Page, where string, args []any) (string, []any) {
	sql, all := ` WHERE (`+where+`)`, append([]any{}, args...)
	bind := func(condition string, v any) {
		all = append(all, v)
		sql += ` AND ` + strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(all)))
	}
	if t.Created != "" && !p.From.IsZero() {
		bind(t.Created+` >= ?`, p.From)
	}
	if t.Created != "" && !p.To.IsZero() {
		bind(t.Created+` < ?`, p.To)
	}
	if t.Name != "" && p.Name != "" { // a range, which an index finds also where the plan does not know the name
		bind(folded(t.Name)+` >= `+folded(`?::text`)+` AND `+folded(t.Name)+` < (lower(?::text) || chr(1114111)) COLLATE "C"`, p.Name)
	}
	return sql, all
}
