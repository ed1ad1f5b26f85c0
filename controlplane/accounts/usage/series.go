package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/http/paging"
)

// Dimension is something by which usage is told apart.
type Dimension string

// The dimensions.
const (
	Product Dimension = "product"
	Route   Dimension = "route"
	Key     Dimension = "key"
	Status  Dimension = "status"
)

// columns of the dimensions, in the order of Usage's fields, and their types.
var columns = []struct {
	of           Dimension
	column, kind string
}{{Product, "product", "text"}, {Route, "route", "text"}, {Key, "key_id", "text"}, {Status, "class", "smallint"}}

// Query asks for the usage of one account, or of all together.
type Query struct {
	Account  string
	All      bool      // in place of Account: everybody, also who was not known
	From, To time.Time // To is not included
	Grain    Grain
	By       []Dimension
	Whole    bool // one entry over all times, whose Start is absent; Grain says how finely From and To lie
	Page     paging.Page
}

// Usage is what was counted together. Dimensions that were not asked for are
// absent; one that is empty was not known.
type Usage struct {
	Start   *time.Time `json:"start,omitempty"` // UTC; absent in a sum over all times
	Product *string    `json:"product,omitempty"`
	Route   *string    `json:"route,omitempty"`
	Key     *string    `json:"key_id,omitempty"`
	Status  *string    `json:"status,omitempty"` // 2xx and so on; none: the request ended without an answer
	Amounts
}

// Amounts are the sums of what was counted together.
type Amounts struct {
	Requests int64    `json:"requests"`
	Refused  int64    `json:"refused"`    // of the requests: answered by the edge itself
	In       int64    `json:"bytes_in"`   // of bodies
	Out      int64    `json:"bytes_out"`  // of bodies
	Latency  *Latency `json:"latency_ms"` // null without requests
	// Open is for how long connections and streams were open, in seconds, of routes with
	// upgrades or a limit of connections; absent without any.
	Open float64 `json:"connection_seconds,omitzero"`
	// Histogram has meter.Buckets, which Latency is read off.
	Histogram []int64 `json:"-"`
}

// Add adds what was counted elsewhere to a, which then has a histogram of its own.
func (a *Amounts) Add(b Amounts) {
	a.Requests, a.Refused, a.In, a.Out, a.Open = a.Requests+b.Requests, a.Refused+b.Refused, a.In+b.In, a.Out+b.Out, a.Open+b.Open
	sum := make([]int64, meter.Buckets)
	for _, part := range [][]int64{a.Histogram, b.Histogram} {
		for i, n := range part {
			sum[i] += n
		}
	}
	a.Histogram, a.Latency = sum, latencyFrom(sum)
}

// List is how a series is paged: a page goes on behind the time and the dimensions of the entry
// before it.
var List = paging.Table[Usage]{
	From: "usage_counts", Ascending: true,
	Sorts: []paging.Sort[Usage]{paging.Text("start", "", func(u Usage) string {
		raw, err := json.Marshal(Usage{Start: u.Start, Product: u.Product, Route: u.Route, Key: u.Key, Status: u.Status})
		if err != nil {
			return "" // of texts and a time: it cannot happen
		}
		return string(raw)
	})},
}

// Behind returns what q.Page begins behind: an entry's time and dimensions, in the order of
// columns; none at the beginning. It reports whether they are those of q.
func (q Query) Behind() (place []any, ok bool) {
	if q.Page.After.Value == "" {
		return nil, true
	}
	var u Usage
	if err := json.Unmarshal([]byte(q.Page.After.Value), &u); err != nil || u.Start == nil {
		return nil, false
	}
	place = append(place, *u.Start)
	for i, text := range []*string{u.Product, u.Route, u.Key, u.Status} {
		if slices.Contains(q.By, columns[i].of) != (text != nil) {
			return nil, false
		}
		switch {
		case text == nil:
		case columns[i].of == Status:
			class, known := classOf(*text)
			if !known {
				return nil, false
			}
			place = append(place, class)
		default:
			place = append(place, *text)
		}
	}
	return place, true
}

// Series returns page q.Page of the usage that q asks for, by time and then by
// its dimensions, and how many entries there are.
func (s Store) Series(ctx context.Context, q Query) (list []Usage, total int, err error) {
	group, dimensions, by := "1", "", []string(nil)
	for i, c := range columns {
		column := c.column
		if slices.Contains(q.By, c.of) {
			group, by = fmt.Sprintf("%s, %d", group, i+2), append(by, column)
		} else {
			column = "NULL::" + c.kind + " AS " + column
		}
		dimensions += column + ", "
	}
	of := "account_id = $1"
	if q.All {
		of = "$1 = ''"
		q.Account = ""
	}
	args := []any{q.Account, q.From, q.To, q.Grain.String(), q.Page.Limit, q.Page.Offset, q.Whole}
	behind := ""
	if place, _ := q.Behind(); len(place) > 0 {
		left, right := "start", ""
		for i, v := range place {
			args = append(args, v)
			right += fmt.Sprintf(", $%d", len(args))
			if i > 0 {
				left += ", " + by[i-1]
			}
		}
		behind = ` WHERE (` + left + `) > (` + right[2:] + `)`
	}
	rows, _ := s.DB.Query(ctx, `SELECT * FROM (SELECT CASE WHEN NOT $7 THEN date_trunc($4, at, 'UTC') END AS start, `+dimensions+sums+`, count(*) OVER () AS total
		FROM usage_counts, usage_progress WHERE `+of+` AND at >= $2 AND at < $3 AND (`+grainCondition(q.Grain)+`)
		GROUP BY `+group+`) AS series`+behind+` ORDER BY `+group+` LIMIT $5 OFFSET $6`, args...)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Usage, error) {
		var u Usage
		var class *int16
		err := u.scan(row, []any{&u.Start, &u.Product, &u.Route, &u.Key, &class}, &total)
		if err == nil && u.Start != nil {
			*u.Start = u.Start.UTC()
		}
		if class != nil {
			name := className(uint8(*class))
			u.Status = &name
		}
		return u, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read usage: %w", err)
	}
	return list, total, nil
}

// Sum returns the whole usage of an account from one time to another, both the
// beginning of a day.
func (s Store) Sum(ctx context.Context, account string, from, to time.Time) (a Amounts, err error) {
	var days int
	rows, _ := s.DB.Query(ctx, `SELECT `+sums+`, 1 FROM usage_counts, usage_progress
		WHERE account_id = $1 AND at >= $2 AND at < $3 AND (`+grainCondition(Day)+`) HAVING count(*) > 0`, account, from, to)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Amounts, err error) { return a, a.scan(row, nil, &days) })
	if err != nil {
		return a, fmt.Errorf("sum usage: %w", err)
	}
	if len(list) == 1 {
		a = list[0]
	}
	return a, nil
}

// scan reads a row: first, the columns of sums, and last.
func (a *Amounts) scan(row pgx.CollectableRow, first []any, last any) error {
	var open int64
	err := row.Scan(append(first, &a.Requests, &a.Refused, &a.In, &a.Out, &a.Histogram, &open, last)...)
	a.Latency, a.Open = latencyFrom(a.Histogram), float64(open)/1e3
	return err
}

// grainCondition is a condition for the rows that hold each request once, in the longest
// grain up to g that has been summed up.
func grainCondition(g Grain) string {
	parts := []string{`grain = 0`}
	switch g {
	case Hour:
		parts = []string{`grain = 1 AND at < hours`, `grain = 0 AND at >= hours`}
	case Day:
		parts = []string{`grain = 2 AND at < days`, `grain = 1 AND at >= days AND at < hours`, `grain = 0 AND at >= hours`}
	}
	return strings.Join(parts, " OR ")
}

// className is the name of a class of status.
func className(class uint8) string {
	if class == 0 || class >= meter.Classes {
		return "none"
	}
	return fmt.Sprintf("%dxx", class)
}

// classOf reads what className writes.
func classOf(name string) (int16, bool) {
	for class := range uint8(meter.Classes) {
		if className(class) == name {
			return int16(class), true
		}
	}
	return 0, false
}
