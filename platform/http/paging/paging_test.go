package paging

import (
	"net/url"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]Page{
		"":                      {50, 0},
		"limit=100&offset=7":    {100, 7},
		"limit=1&offset=0":      {1, 0},
		"offset=1000000":        {50, 1_000_000},
		"limit=50&unknown=yes!": {50, 0},
	} {
		q, _ := url.ParseQuery(query)
		if p, details := Parse(q); p != want || details != nil {
			t.Errorf("%q: %+v %v", query, p, details)
		}
	}
	for query, bad := range map[string]int{
		"limit=0": 1, "limit=101": 1, "limit=": 1, "limit=ten&offset=-1": 2, "offset=1000001": 1, "limit=1e1": 1,
	} {
		q, _ := url.ParseQuery(query)
		if _, details := Parse(q); len(details) != bad {
			t.Errorf("%q: %v, want %d faults", query, details, bad)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	l := Of([]int{1, 2}, Page{2, 4}, 7)
	if !l.Pagination.HasMore || Of([]int{1}, Page{2, 6}, 7).Pagination.HasMore {
		t.Error("has_more")
	}
	if e := Of[int](nil, Page{2, 0}, 0); e.Data == nil || e.Pagination.HasMore {
		t.Error("an empty list must be [] and have no more")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("limit=5&offset=3")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 64, 8<<10, func() {
			if q, err := url.ParseQuery(s); err == nil {
				Parse(q)
			}
		})
		q, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		if p, _ := Parse(q); p.Limit < 1 || p.Limit > MaxLimit || p.Offset < 0 || p.Offset > MaxOffset {
			t.Fatalf("%+v", p)
		}
	})
}
