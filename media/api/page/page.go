// Package page reads which part of a list of the media product is asked for, by offset
// or by cursor, and writes the page: newest first.
package page

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/platform/http/paging"
)

// MaxOffset bounds how many rows the database may have to skip; further down a list,
// cursors go on.
const MaxOffset = 100_000

// Request is which part of a list is wanted.
type Request struct {
	Limit  int
	Offset int
	After  Cursor // zero: from the newest
}

// Cursor is the place right after one row.
type Cursor struct {
	At time.Time
	ID string
}

// Parse reads limit, offset and cursor from q and records what is wrong in f.
func Parse(f *form.Form, q url.Values) Request {
	r := Request{Limit: f.Number(q, "limit", paging.DefaultLimit, 1, paging.MaxLimit), Offset: f.Number(q, "offset", 0, 0, MaxOffset)}
	text := q.Get("cursor")
	if text == "" {
		return r
	}
	var ok bool
	if r.After, ok = parseCursor(text); !ok {
		f.Fail("cursor", "is not a cursor of this list", "next_cursor of the page before")
	}
	if q.Get("offset") != "" {
		f.Fail("offset", "cannot be combined with cursor", "one of offset, cursor")
	}
	return r
}

// String gives the cursor as a caller sees it; "" for the zero cursor.
func (c Cursor) String() string {
	if c.ID == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At.UnixMicro(), 10) + "|" + c.ID))
}

// Bound returns the cursor as the two arguments of a query's
// `$n::timestamptz IS NULL OR (created_at, id) < ($n, $n+1)`.
func (c Cursor) Bound() (*time.Time, string) {
	if c.ID == "" {
		return nil, ""
	}
	return &c.At, c.ID
}

// parseCursor reads what String has written. Anything that the database could
// stumble over is refused. It takes time and memory linear in text, which the edge's
// bound on a request's head bounds.
func parseCursor(text string) (Cursor, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	micros, id, ok := strings.Cut(string(raw), "|")
	n, nerr := strconv.ParseInt(micros, 10, 64)
	const far = 4102444800_000_000 // 2100-01-01: nothing is as new
	if err != nil || nerr != nil || !ok || id == "" || len(id) > 64 || n < 0 || n > far || strings.ContainsRune(id, 0) {
		return Cursor{}, false
	}
	return Cursor{At: time.UnixMicro(n).UTC(), ID: strings.ToValidUTF8(id, "")}, true
}

// List is one page as it is answered.
type List[T any] struct {
	Data       []T        `json:"data"`
	Pagination Pagination `json:"pagination"`
}

// Pagination says where a page stands in its list.
type Pagination struct {
	paging.Info
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// Cut makes the page out of rows, of which the query has fetched one more than
// the limit if there is one; place gives a row's cursor, view what is answered.
func Cut[R, T any](r Request, rows []R, total int, place func(R) Cursor, view func(R) T) List[T] {
	l := List[T]{Data: []T{}, Pagination: Pagination{Info: paging.Info{Total: total, Limit: r.Limit, Offset: r.Offset, HasMore: len(rows) > r.Limit}}}
	if l.Pagination.HasMore {
		rows = rows[:r.Limit]
		next := place(rows[r.Limit-1]).String()
		l.Pagination.NextCursor = &next
	}
	for _, row := range rows {
		l.Data = append(l.Data, view(row))
	}
	return l
}
