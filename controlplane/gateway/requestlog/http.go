package requestlog

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// answer is the answer to a list request.
type answer struct {
	Data       []Request `json:"data"`
	Pagination struct {
		Limit      int     `json:"limit"`
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	} `json:"pagination"`
	// NotRecorded is how many failed requests there was no room for.
	NotRecorded int64 `json:"not_recorded"`
}

// Routes mounts GET /v1/requests and /v1/requests/{id} for callers whom an edge has
// identified: each sees those of their account.
func (s Store) Routes(r chi.Router, a httpapi.Adapter) {
	s.mount(r, a, "/v1/requests", func(r *http.Request) (string, error) {
		caller, _ := identity.From(r.Context())
		if caller.Account == "" { // paid for: there is no account whose requests could be shown
			return "", &apierror.Error{Code: decision.ScopeMissing}
		}
		return caller.Account, nil
	})
}

// AdminRoutes mounts the same relative to r, which checks who calls: operators see all
// requests, or those of an account.
func (s Store) AdminRoutes(r chi.Router, a httpapi.Adapter) {
	s.mount(r, a, "/requests", func(r *http.Request) (string, error) { return r.URL.Query().Get("account"), nil })
}

func (s Store) mount(r chi.Router, a httpapi.Adapter, path string, whose func(*http.Request) (string, error)) {
	r.Get(path, httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (out answer, err error) {
		account, err := whose(r)
		if err != nil {
			return out, err
		}
		f, err := ParseFilter(r.URL.Query())
		if err != nil {
			return out, err
		}
		f.Account = account
		p, err := s.List(r.Context(), f)
		if err != nil {
			return out, err
		}
		out.Data, out.NotRecorded = append([]Request{}, p.Data...), p.Dropped
		out.Pagination.Limit, out.Pagination.HasMore = f.Limit, p.Next != nil
		if p.Next != nil {
			text := p.Next.String()
			out.Pagination.NextCursor = &text
		}
		return out, nil
	}))
	r.Get(path+"/{id}", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (out Request, err error) {
		account, err := whose(r)
		if err != nil {
			return out, err
		}
		id := chi.URLParam(r, "id")
		if len(id) > maxFilter || !plain(id) {
			return out, &apierror.Error{Code: decision.NotFound}
		}
		return s.Get(r.Context(), account, id)
	}))
}

// maxFilter bounds the value of a filter, in bytes.
const maxFilter = 100

// ParseFilter reads limit, cursor, status, route, product, key, method, would_refuse and
// since of a query, and names every one that is not valid. The account is the caller's to say.
//
// It takes time and memory linear in q.
func ParseFilter(q url.Values) (Filter, error) {
	page, details := paging.Parse(url.Values{"limit": q["limit"]})
	if !q.Has("limit") {
		page, details = paging.Page{Limit: paging.DefaultLimit}, nil
	}
	f := Filter{Limit: page.Limit, Route: q.Get("route"), Product: q.Get("product"), Key: q.Get("key"), Method: strings.ToUpper(q.Get("method")), Would: q.Get("would_refuse")}
	bad := func(field, expected string) {
		details = append(details, decision.Detail{Field: field, Issue: "is not valid", Expected: expected})
	}
	for _, field := range []string{"route", "product", "key", "method", "would_refuse", "account"} {
		if v := q.Get(field); len(v) > maxFilter || !plain(v) {
			bad(field, "text of at most 100 bytes")
		}
	}
	if !f.setStatus(q.Get("status")) {
		bad("status", "2xx, 3xx, 4xx, 5xx, failed, or a status such as 429")
	}
	var ok bool
	if f.Since, ok = parseTime(q.Get("since")); !ok {
		bad("since", "a time such as 2026-01-31T12:00:00Z")
	}
	if f.Before, ok = parseCursor(q.Get("cursor")); !ok {
		bad("cursor", "next_cursor of the page before")
	}
	return f, apierror.Invalid(details)
}

// setStatus reads a class of status, a status, or "failed".
func (f *Filter) setStatus(text string) bool {
	switch {
	case text == "":
		return true
	case text == "failed":
		f.Failed = true
		return true
	case len(text) == 3 && text[1:] == "xx" && text[0] >= '1' && text[0] <= '5':
		f.StatusFrom = int(text[0]-'0') * 100
		f.StatusTo = f.StatusFrom + 99
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 100 || n > 599 {
		return false
	}
	f.StatusFrom, f.StatusTo = int(n), int(n)
	return true
}

func parseTime(text string) (t time.Time, ok bool) {
	if text == "" {
		return t, true
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// String is what ParseFilter reads.
func (c Cursor) String() string { return strconv.FormatInt(c.EndedAt.UnixMicro(), 10) + "." + c.ID }

func parseCursor(text string) (c Cursor, ok bool) {
	if text == "" {
		return c, true
	}
	at, id, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || n < 0 || n > 1<<53 || id == "" || len(id) > maxFilter || !plain(id) {
		return c, false
	}
	return Cursor{time.UnixMicro(n), id}, true
}

// plain reports whether the database can hold a text.
func plain(text string) bool { return text == storable(text) }

// storable is a text without what the database cannot hold.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
