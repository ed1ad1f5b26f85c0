// Package paging reads the limit and offset of a list request and writes the
// pagination object of its answer (contract 4.6: default 50, at most 100).
package paging

import (
	"net/url"
	"strconv"

	"sluice.dev/sluice/filters/decision"
)

// The bounds of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 100
	// MaxOffset bounds what the database must skip.
	MaxOffset = 1_000_000
)

// Page says which part of a list is asked for.
type Page struct{ Limit, Offset int }

// Parse reads limit and offset; each may be absent. The details name those that
// are not whole numbers within their bounds.
//
// It takes time linear in the two values, and no memory for them.
func Parse(q url.Values) (Page, []decision.Detail) {
	var details []decision.Detail
	number := func(name string, least, most, absent int) int {
		if !q.Has(name) {
			return absent
		}
		n, err := strconv.Atoi(q.Get(name))
		if err != nil || n < least || n > most {
			details = append(details, decision.Detail{Field: name, Issue: "is not valid",
				Expected: "a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)})
			return absent
		}
		return n
	}
	p := Page{Limit: number("limit", 1, MaxLimit, DefaultLimit), Offset: number("offset", 0, MaxOffset, 0)}
	return p, details
}

// List is the answer to a list request.
type List[T any] struct {
	Data       []T  `json:"data"`
	Pagination Info `json:"pagination"`
}

// Info is the pagination object.
type Info struct {
	Total   int  `json:"total"`
	Limit   int  `json:"limit"`
	Offset  int  `json:"offset"`
	HasMore bool `json:"has_more"`
}

// Of returns the answer with items, which are page p of total ones.
func Of[T any](items []T, p Page, total int) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{items, Info{total, p.Limit, p.Offset, p.Offset+len(items) < total}}
}
