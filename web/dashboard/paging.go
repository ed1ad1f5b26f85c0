package dashboard

import (
	"net/http"
	"net/url"
	"strconv"

	"sluice.dev/sluice/platform/http/paging"
)

// pager leads through a list.
type pager struct {
	First, Last, Total int    // of the rows shown, from 1
	Newer, Older       string // links; empty: there is nothing
}

// pageOf reads which part of a list is asked for. What is no number is the
// beginning.
func pageOf(r *http.Request) paging.Page { return pageIn(r.URL.Query()) }

// pageIn is pageOf for a query.
func pageIn(q url.Values) paging.Page {
	offset, err := strconv.Atoi(q.Get("offset"))
	if err != nil || offset < 0 || offset > paging.MaxOffset {
		offset = 0
	}
	return paging.Page{Limit: perPage, Offset: offset}
}

// pagerOf leads on from page p of the list at a path, with shown rows of total.
// The path is not r's, which may be that of a form.
func pagerOf(r *http.Request, at string, p paging.Page, shown, total int) pager {
	q := r.URL.Query()
	if account := r.FormValue("account"); account != "" {
		q.Set("account", account)
	}
	return pagerIn(q, at, p, shown, total)
}

// pagerIn is pagerOf for the query of the list.
func pagerIn(q url.Values, at string, p paging.Page, shown, total int) pager {
	link := func(offset int) string {
		q.Del("done")
		q.Set("offset", strconv.Itoa(offset))
		return (&url.URL{Path: Root + at, RawQuery: q.Encode()}).String()
	}
	g := pager{Last: p.Offset + shown, Total: total}
	if shown > 0 {
		g.First = p.Offset + 1
	}
	if p.Offset > 0 {
		g.Newer = link(max(0, p.Offset-p.Limit))
	}
	if g.Last < total {
		g.Older = link(g.Last)
	}
	return g
}
