package schedules

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/workers/schedules/definition"
)

// pageOf is a list with its place, in the Events API's camelCase.
type pageOf[T any] struct {
	Data       []T        `json:"data"`
	Pagination pagination `json:"pagination"`
}

type pagination struct {
	Total   int  `json:"total"`
	Limit   int  `json:"limit"`
	Offset  int  `json:"offset"`
	HasMore bool `json:"hasMore"`
}

func pageWith[T any](items []T, p paging.Page, total int) pageOf[T] {
	return pageOf[T]{nonNil(items), pagination{total, p.Limit, p.Offset, p.Offset+len(items) < total}}
}

// query reads parameters and gathers what is wrong with them.
type query struct {
	url.Values
	details []decision.Detail
}

func (q *query) oneOf(name string, allowed ...string) string {
	value := q.Get(name)
	if value != "" && !slices.Contains(allowed, value) {
		q.add(name, "one of "+strings.Join(allowed, ", "))
	}
	return value
}

// instant reads an ISO 8601 time, or a date as its first instant in UTC.
func (q *query) instant(name string) *time.Time {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return &at
		}
	}
	q.add(name, "an ISO 8601 timestamp")
	return nil
}

func (q *query) add(name, expected string) {
	q.details = append(q.details, decision.Detail{Field: name, Issue: "is not valid", Expected: expected})
}

// page reads limit and offset.
func (q *query) page() paging.Page {
	p, details := paging.Parse(q.Values)
	q.details = append(q.details, details...)
	return p
}

func (h handlers) list(r *http.Request, _ httpapi.None) (p pageOf[summary], err error) {
	q := query{Values: r.URL.Query()}
	page := q.page()
	f := Filter{
		Status: q.oneOf("status", Active, Paused, Completed),
		Type:   q.oneOf("type", definition.TypeStream, definition.TypeWebhook, definition.TypeCustom),
		Tag:    q.Get("tag"),
	}
	if err := apierror.Invalid(q.details); err != nil {
		return p, err
	}
	found, total, err := h.List(r.Context(), identity.Account(r.Context()), f, page)
	if err != nil {
		return p, err
	}
	summaries := make([]summary, len(found))
	for i, s := range found {
		summaries[i] = summaryOf(s)
	}
	return pageWith(summaries, page, total), nil
}

func (h handlers) executions(r *http.Request, _ httpapi.None) (p pageOf[Record], err error) {
	q := query{Values: r.URL.Query()}
	page := q.page()
	f := HistoryFilter{
		Status: q.oneOf("status", Success, Failed, Skipped, Executing, Waiting),
		From:   q.instant("startDate"),
		To:     q.instant("endDate"),
	}
	if err := apierror.Invalid(q.details); err != nil {
		return p, err
	}
	account, id := target(r)
	records, total, err := h.History(r.Context(), account, id, f, page)
	if err != nil {
		return p, err
	}
	for i := range records {
		records[i].ExecutedAt = *millis(&records[i].ExecutedAt)
	}
	return pageWith(records, page, total), nil
}

// eventType is what the type parameter of the event list may hold: a name, a
// group as in stream.*, or error.
var eventType = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}(\.\*)?$`)

// eventPage is a list of events: the latest ones, in snake_case.
type eventPage struct {
	Data       []AccountEvent `json:"data"`
	Pagination struct {
		Limit   int  `json:"limit"`
		HasMore bool `json:"has_more"`
	} `json:"pagination"`
}

func (h handlers) events(r *http.Request, _ httpapi.None) (e eventPage, err error) {
	q := query{Values: r.URL.Query()}
	page := q.page()
	f := q.eventFilter()
	if err := apierror.Invalid(q.details); err != nil {
		return e, err
	}
	list, more, err := h.AccountEvents(r.Context(), identity.Account(r.Context()), f, page.Limit)
	e.Data, e.Pagination.Limit, e.Pagination.HasMore = nonNil(list), page.Limit, more
	return e, err
}

func (q *query) eventFilter() (f EventFilter) {
	switch name := q.Get("type"); {
	case name == "":
	case name == "error":
		f.Errors = true
	case !eventType.MatchString(name):
		q.add("type", "error, the name of an event, or a group such as stream.*")
	default:
		f.Types = []string{strings.NewReplacer("_", `\_`, "*", "%").Replace(name)}
	}
	if since := q.instant("since"); since != nil {
		f.Since = *since
	}
	return f
}
