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
	Total      int     `json:"total"`
	Limit      int     `json:"limit"`
	Offset     int     `json:"offset"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
}

// camel is a list as the Events API names its parts.
func camel[T any](l paging.List[T]) pageOf[T] {
	p := l.Pagination
	return pageOf[T]{l.Data, pagination{*p.Total, p.Limit, *p.Offset, p.HasMore, p.NextCursor}}
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
	at, ok := paging.Moment(text)
	if !ok {
		q.add(name, "an ISO 8601 timestamp")
	}
	return &at
}

func (q *query) add(name, expected string) {
	q.details = append(q.details, decision.Detail{Field: name, Issue: "is not valid", Expected: expected})
}

// listed begins a query of a list, with what its table reads of it.
func listed(r *http.Request, parse func(url.Values) (paging.Page, []decision.Detail)) (query, paging.Page) {
	q := query{Values: r.URL.Query()}
	p, details := parse(q.Values)
	q.details = details
	return q, p
}

func (h handlers) list(r *http.Request, _ httpapi.None) (p pageOf[summary], err error) {
	q, page := listed(r, Schedules.Parse)
	f := Filter{
		Status: q.oneOf("status", Active, Paused, Completed),
		Type:   q.oneOf("type", definition.TypeStream, definition.TypeWebhook, definition.TypeCustom),
		Tag:    q.Get("tag"),
	}
	if err := apierror.Invalid(q.details); err != nil {
		return p, err
	}
	found, err := h.Page(r.Context(), identity.Account(r.Context()), f, page)
	if err != nil {
		return p, err
	}
	return camel(paging.Map(found, summaryOf)), nil
}

func (h handlers) executions(r *http.Request, _ httpapi.None) (p pageOf[Record], err error) {
	q, page := listed(r, Executions.Parse)
	f := HistoryFilter{
		Status: q.oneOf("status", Success, Failed, Skipped, Executing, Waiting),
		From:   q.instant("startDate"),
		To:     q.instant("endDate"),
	}
	if err := apierror.Invalid(q.details); err != nil {
		return p, err
	}
	account, id := target(r)
	records, err := h.HistoryPage(r.Context(), account, id, f, page)
	if err != nil {
		return p, err
	}
	for i := range records.Data {
		records.Data[i].ExecutedAt = *millis(&records.Data[i].ExecutedAt)
	}
	return camel(records), nil
}

// eventType is what the type parameter of the event list may hold: a name, a
// group as in stream.*, or error.
var eventType = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}(\.\*)?$`)

// events answers a page of events, in snake_case.
func (h handlers) events(r *http.Request, _ httpapi.None) (e paging.List[AccountEvent], err error) {
	q, page := listed(r, Events.Parse)
	f := q.eventFilter()
	if since := q.instant("since"); since != nil && since.After(page.From) { // what created_after was called at first
		page.From = *since
	}
	if err := apierror.Invalid(q.details); err != nil {
		return e, err
	}
	return h.AccountEvents(r.Context(), identity.Account(r.Context()), f, page)
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
	return f
}
