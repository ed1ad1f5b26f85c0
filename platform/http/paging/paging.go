// Package paging reads which part of a list a request asks for, and in which order, reads that
// part from Postgres, and writes the answer: the one way of all lists (contract 4.6).
package paging

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
)

// The bounds of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 100
	// MaxOffset bounds what the database must skip; further down a list, cursors go on.
	MaxOffset = 100_000
	// maxText bounds the text by which a list is narrowed, in bytes.
	maxText = 1000
)

// Page says which part of a list is asked for. Of a Page that no request asked for, Limit must
// be set.
type Page struct {
	Limit, Offset int
	// Sort is an order that the list offers, such as name, or -name for the reverse; empty: its usual one.
	Sort string
	// After is the place that the page begins after; zero: at the beginning.
	After Place
	// Name is how the names of the rows begin, whatever their case; empty: any.
	Name string
	// From and To bound the time of the rows, To excluded; zero: they do not.
	From, To time.Time
}

// Parse reads limit and offset; each may be absent or empty. The details name those that
// are not whole numbers within their bounds.
//
// It takes time linear in the two values, and no memory for them.
func Parse(q url.Values) (Page, []decision.Detail) {
	r := reader{q: q}
	p := Page{Limit: r.number("limit", 1, MaxLimit, DefaultLimit), Offset: r.number("offset", 0, MaxOffset, 0)}
	return p, r.details
}

// reader reads parameters and gathers what is wrong with them.
type reader struct {
	q       url.Values
	details []decision.Detail
}

func (r *reader) bad(name, issue, expected string) {
	r.details = append(r.details, decision.Detail{Field: name, Issue: issue, Expected: expected})
}

func (r *reader) number(name string, least, most, absent int) int {
	text := r.q.Get(name)
	if text == "" {
		return absent
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		r.bad(name, "is not valid", "a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return absent
	}
	return n
}

// text reads a text that the database can hold.
func (r *reader) text(name string) string {
	text := r.q.Get(name)
	if len(text) > maxText || !storable(text) {
		r.bad(name, "is not valid", "text of at most "+strconv.Itoa(maxText)+" bytes")
		return ""
	}
	return text
}

func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// Moment reads an ISO 8601 time, or a date as its first instant in UTC.
func Moment(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

func (r *reader) moment(name string) time.Time {
	text := r.q.Get(name)
	if text == "" {
		return time.Time{}
	}
	at, ok := Moment(text)
	if !ok {
		r.bad(name, "is not valid", "a time such as 2026-01-31T12:00:00Z, or a date")
	}
	return at
}

// offer is what callers may ask of a list.
type offer struct {
	list             string // what tells it from other lists
	sorts            []string
	log, timed       bool
	numbered         bool     // ids are whole numbers
	name             string   // the parameter by which names are narrowed; empty: none
	after, before    string   // those that bound the time
	numbers, moments []string // of sorts: whose values are such
}

// parse reads limit, cursor and, where the list offers them, offset, sort, the name and the two
// bounds of time.
func (o offer) parse(q url.Values) (Page, []decision.Detail) {
	r := reader{q: q}
	p := Page{Limit: r.number("limit", 1, MaxLimit, DefaultLimit)}
	if !o.log {
		p.Offset = r.number("offset", 0, MaxOffset, 0)
	}
	if o.name != "" {
		p.Name = r.text(o.name)
	}
	if o.timed {
		p.From, p.To = r.moment(o.after), r.moment(o.before)
	}
	if p.Sort = q.Get("sort"); p.Sort != "" && !slices.Contains(o.sorts, strings.TrimPrefix(p.Sort, "-")) {
		r.bad("sort", "is not an order of this list", "one of "+strings.Join(o.orders(), ", "))
		p.Sort = ""
	}
	if text := q.Get("cursor"); text != "" {
		o.cursor(&r, &p, text)
	}
	return p, r.details
}

// cursor reads where the page begins, which says the order too.
func (o offer) cursor(r *reader, p *Page, text string) {
	sort, after, ok := o.read(text)
	if !ok {
		r.bad("cursor", "is not a cursor of this list", "next_cursor of the page before")
		return
	}
	if p.Sort != "" && p.Sort != sort {
		r.bad("cursor", "is of a page in another order", "next_cursor of a page with sort="+p.Sort+", or no sort")
	}
	if p.Offset != 0 {
		r.bad("offset", "cannot be combined with cursor", "one of offset, cursor")
	}
	p.Sort, p.After = sort, after
}

// orders are all values of sort.
func (o offer) orders() (list []string) {
	for _, s := range o.sorts {
		list = append(list, s, "-"+s)
	}
	return list
}

// List is the answer to a list request.
type List[T any] struct {
	Data       []T  `json:"data"`
	Pagination Info `json:"pagination"`
}

// Info is the pagination object. Lists that grow without end, such as those of events, are
// neither counted nor reached by offset: Total and Offset are nil.
type Info struct {
	Total      *int    `json:"total,omitempty"`
	Limit      int     `json:"limit"`
	Offset     *int    `json:"offset,omitempty"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// Map is l with each of its items as view shows it.
func Map[R, T any](l List[R], view func(R) T) List[T] {
	out := List[T]{Data: make([]T, len(l.Data)), Pagination: l.Pagination}
	for i, item := range l.Data {
		out.Data[i] = view(item)
	}
	return out
}

// Rows are the items of a list and, of one that is counted, how many there are in all.
func Rows[T any](l List[T], err error) ([]T, int, error) {
	if err != nil || l.Pagination.Total == nil {
		return l.Data, 0, err
	}
	return l.Data, *l.Pagination.Total, nil
}
