package billing

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
)

// at reads a time.
func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestWhatASeriesIsOf(t *testing.T) {
	t.Parallel()
	now, page := at("2026-11-21T12:30:30Z"), paging.Page{Limit: 50}
	for query, want := range map[string]usage.Query{
		"group_by=key":       {From: at("2026-10-22T00:00:00Z"), To: now, Grain: usage.Day, By: []usage.Dimension{usage.Key}, Page: page},
		"granularity=hour":   {From: at("2026-11-20T12:00:00Z"), To: now, Grain: usage.Hour, Page: page},
		"granularity=minute": {From: at("2026-11-21T11:30:00Z"), To: now, Grain: usage.Minute, Page: page},
		"granularity=minute&from=2026-11-21&limit=7&offset=2": {
			From: at("2026-11-21T00:00:00Z"), To: now, Grain: usage.Minute, Page: paging.Page{Limit: 7, Offset: 2}},
		"granularity=day&from=2026-11-01&to=2026-11-02": {From: at("2026-11-01T00:00:00Z"), To: at("2026-11-03T00:00:00Z"), Grain: usage.Day, Page: page},
		"granularity=hour&from=2026-11-21T09:30:00%2B01:00&to=2026-11-21T10:00:00Z&group_by=status,route": {
			From: at("2026-11-21T08:00:00Z"), To: at("2026-11-21T10:00:00Z"), Grain: usage.Hour,
			By: []usage.Dimension{usage.Status, usage.Route}, Page: page},
	} {
		v, _ := url.ParseQuery(query)
		got, err := parseSeries(v, now)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", query, err, diff)
		}
	}
}

func TestEveryFaultOfASeriesIsNamed(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"granularity=week&group_by=plan&from=x&to=y&limit=0": {"limit", "granularity", "group_by", "to", "from"},
		"group_by=key,key": {"group_by"}, "group_by=,": {"group_by"},
		"granularity=day&from=2026-11-02&to=2026-11-01":    {"to"},
		"granularity=minute&from=2026-11-01&to=2026-11-20": {"to"},
		"granularity=hour&from=1999-01-01T00:00:00Z":       {"from"},
	} {
		v, _ := url.ParseQuery(query)
		_, err := parseSeries(v, at("2026-11-21T12:30:30Z"))
		e, _ := errors.AsType[*apierror.Error](err)
		var got []string
		if e != nil {
			for _, d := range e.Details {
				got = append(got, d.Field)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}
