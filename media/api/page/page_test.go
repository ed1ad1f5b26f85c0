package page_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/page"
	"sluice.dev/sluice/platform/http/paging"
)

func parse(query string) (page.Request, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return page.Request{}, err
	}
	var f form.Form
	r := page.Parse(&f, q)
	return r, f.Err()
}

func TestWhichPageIsAskedFor(t *testing.T) {
	t.Parallel()
	place := page.Cursor{At: time.UnixMicro(1_700_000_000_123_456).UTC(), ID: "strm_1"}
	cases := map[string]page.Request{
		"":                         {Limit: 50},
		"limit=1&offset=7":         {Limit: 1, Offset: 7},
		"limit=100":                {Limit: 100},
		"cursor=" + place.String(): {Limit: 50, After: place},
		"limit=&offset=&cursor=":   {Limit: 50},
	}
	for query, want := range cases {
		got, err := parse(query)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", query, err, diff)
		}
	}
}

func TestPagesThatAreRefusedNameEveryField(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"limit=0":                    {"limit"},
		"limit=101":                  {"limit"},
		"limit=ten&offset=-1":        {"limit", "offset"},
		"offset=100001":              {"offset"},
		"cursor=!!":                  {"cursor"},
		"cursor=YQ":                  {"cursor"},
		"cursor=YQ&offset=3":         {"cursor", "offset"},
		"limit=99999999999999999999": {"limit"},
	}
	for query, fields := range cases {
		_, err := parse(query)
		for _, field := range fields {
			if err == nil || !strings.Contains(err.Error(), field+" ") {
				t.Errorf("%s: %v does not name %s", query, err, field)
			}
		}
	}
}

func TestAPageIsCutAndSaysWhereItEnds(t *testing.T) {
	t.Parallel()
	place := func(n int) page.Cursor { return page.Cursor{At: time.UnixMicro(int64(n)).UTC(), ID: "x"} }
	same := func(n int) int { return n }
	full := page.Cut(page.Request{Limit: 2, Offset: 4}, []int{9, 8, 7}, 11, place, same)
	next := place(8).String()
	want := page.List[int]{Data: []int{9, 8}, Pagination: page.Pagination{Info: paging.Info{Total: 11, Limit: 2, Offset: 4, HasMore: true}, NextCursor: &next}}
	if diff := cmp.Diff(want, full); diff != "" {
		t.Error(diff)
	}
	last := page.Cut(page.Request{Limit: 2}, []int{}, 0, place, same)
	if last.Data == nil || last.Pagination.HasMore || last.Pagination.NextCursor != nil {
		t.Errorf("%+v", last)
	}
}

func TestTheStartHasNoBound(t *testing.T) {
	t.Parallel()
	if at, id := (page.Cursor{}).Bound(); at != nil || id != "" {
		t.Error(at, id)
	}
	if at, id := (page.Cursor{At: time.Unix(1, 0), ID: "x"}).Bound(); at == nil || id != "x" {
		t.Error(at, id)
	}
}

// Whatever the query, a page is in bounds or refused, and a cursor that is
// accepted reads back as itself.
func FuzzParse(f *testing.F) {
	f.Add("limit=5&cursor=MTIzfHN0cm1fMQ")
	f.Add("offset=3")
	f.Fuzz(func(t *testing.T, query string) {
		r, err := parse(query)
		if err != nil {
			return
		}
		if r.Limit < 1 || r.Limit > paging.MaxLimit || r.Offset < 0 || r.Offset > page.MaxOffset {
			t.Fatalf("%+v", r)
		}
		if r.After.ID != "" {
			again, err := parse("cursor=" + r.After.String())
			if err != nil || again.After != r.After {
				t.Fatalf("%+v reads back as %+v: %v", r.After, again.After, err)
			}
		}
	})
}
