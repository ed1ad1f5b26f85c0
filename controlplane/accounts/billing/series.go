package billing

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// grains are the granularities of a series: how far back it goes when the query
// does not say, and how long it may be at most.
var grains = map[string]struct {
	grain       usage.Grain
	usual, most time.Duration
}{
	"minute": {usage.Minute, time.Hour, usage.KeepMinutes},
	"hour":   {usage.Hour, 24 * time.Hour, usage.KeepHours},
	"day":    {usage.Day, 30 * 24 * time.Hour, MaxDays * 24 * time.Hour},
}

// Series is a series of requests over a time.
type Series struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"` // not included
	Granularity string    `json:"granularity"`
	paging.List[usage.Usage]
}

// series answers GET /v1/billing/usage with a granularity or group_by.
func (a API) series(r *http.Request, v url.Values) (Series, error) {
	q, err := parseSeries(v, a.Store.now())
	if err != nil {
		return Series{}, err
	}
	q.Account = identity.Account(r.Context())
	page := q.Page
	q.Page.Limit++ // to know whether there is more
	list, total, err := usage.Store{DB: a.Store.DB, Now: a.Store.Now}.Series(r.Context(), q)
	return Series{q.From, q.To, q.Grain.String(), usage.List.Cut(page, list, total)}, err
}

// parseSeries reads from and to (times, or dates that are included), granularity
// (minute, hour or day; absent: day), group_by (names joined by commas) and the
// page. It fails with invalid_request that names every bad one.
func parseSeries(v url.Values, now time.Time) (q usage.Query, err error) {
	var details []decision.Detail
	bad := func(field, issue, expected string) {
		details = append(details, decision.Detail{Field: field, Issue: issue, Expected: expected})
	}
	q.Page, details = usage.List.Parse(v)
	name := v.Get("granularity")
	if name == "" {
		name = "day"
	}
	g, ok := grains[name]
	if !ok {
		bad("granularity", "is not valid", "minute, hour or day")
		g = grains["day"]
	}
	q.Grain, q.To = g.grain, now.UTC()
	known := []usage.Dimension{usage.Product, usage.Route, usage.Key, usage.Status}
	if text := v.Get("group_by"); text != "" {
		for by := range strings.SplitSeq(text, ",") {
			if d := usage.Dimension(by); !slices.Contains(known, d) || slices.Contains(q.By, d) {
				bad("group_by", "has a name that is not known, or is given twice", "product, route, key and status, joined by commas")
				break
			}
			q.By = append(q.By, usage.Dimension(by))
		}
	}
	if s := v.Get("to"); s != "" {
		if q.To, ok = parseMoment(s, true); !ok {
			bad("to", "is not valid", momentForm)
		}
	}
	q.From = q.To.Add(-g.usual)
	if s := v.Get("from"); s != "" {
		if q.From, ok = parseMoment(s, false); !ok {
			bad("from", "is not valid", momentForm)
		}
	}
	if length := q.To.Sub(q.From); len(details) == 0 && (length <= 0 || length > g.most) {
		bad("to", "is out of range", fmt.Sprintf("after 'from', and at most %d days later with this granularity", g.most/(24*time.Hour)))
	}
	q.From = q.Grain.Start(q.From)
	if _, ok := q.Behind(); !ok {
		bad("cursor", "is not a cursor of this list", "next_cursor of the page before, with the same group_by")
	}
	return q, apierror.Invalid(details)
}

const momentForm = "a date such as 2026-11-21, or a time such as 2026-11-21T14:00:00Z"

// parseMoment reads a date or an RFC 3339 time. A date that ends a range is
// included, so it stands for the day after.
func parseMoment(s string, end bool) (time.Time, bool) {
	if d, err := ParseDate(s); err == nil {
		if end {
			return d.AddDate(0, 0, 1), true
		}
		return d.Time, true
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err == nil && t.Year() >= 2000 && t.Year() < 2200
}
