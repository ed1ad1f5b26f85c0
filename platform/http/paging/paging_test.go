package paging_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/limits/growth"
)

// thing is a row of a list that offers everything.
type thing struct {
	ID      string
	Name    string
	Created time.Time
}

var things = paging.Table[thing]{
	From: "things",
	Sorts: []paging.Sort[thing]{
		paging.Time("created_at", "created_at", func(t thing) time.Time { return t.Created }),
		paging.Text("name", "name", func(t thing) string { return t.Name }),
	},
	ID: "id", IDOf: func(t thing) string { return t.ID },
	Created: "created_at", Name: "name", Param: "name",
}

// numbered is a log.
var numbered = paging.Table[int64]{From: "numbers", Sorts: []paging.Sort[int64]{paging.Number("seq", "seq", func(n int64) int64 { return n })}, Log: true}

var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// cursorOf is the one after the first of two rows, in an order.
func cursorOf(sort string) string {
	first := thing{"thing_1", "Åsa's", day.Add(123_456 * time.Microsecond)}
	return *things.Cut(paging.Page{Limit: 1, Sort: sort}, []thing{first, {}}, 2).Pagination.NextCursor
}

func parse(query string) (paging.Page, []string) {
	q, _ := url.ParseQuery(query)
	p, details := things.Parse(q)
	var fields []string
	for _, d := range details {
		fields = append(fields, d.Field)
	}
	return p, fields
}

func TestWhatIsAskedOfAList(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]paging.Page{
		"":                             {Limit: 50},
		"limit=100&offset=7":           {Limit: 100, Offset: 7},
		"limit=&offset=&cursor=&sort=": {Limit: 50},
		"offset=100000":                {Limit: 50, Offset: 100_000},
		"sort=-name&name=Le":           {Limit: 50, Sort: "-name", Name: "Le"},
		"created_after=2026-11-21&created_before=2026-11-22T01:00:00%2B01:00": {Limit: 50, From: day, To: day.AddDate(0, 0, 1)},
		"cursor=" + cursorOf(""):               {Limit: 50, Sort: "-created_at", After: paging.Place{Value: "1795219200123456", ID: "thing_1"}},
		"sort=name&cursor=" + cursorOf("name"): {Limit: 50, Sort: "name", After: paging.Place{Value: "Åsa's", ID: "thing_1"}},
		"cursor=" + cursorOf("-name"):          {Limit: 50, Sort: "-name", After: paging.Place{Value: "Åsa's", ID: "thing_1"}},
	} {
		got, bad := parse(query)
		if diff := cmp.Diff(want, got); diff != "" || bad != nil {
			t.Errorf("%q: %v %s", query, bad, diff)
		}
	}
}

func TestWhatAListDoesNotOfferIsNamed(t *testing.T) {
	t.Parallel()
	mangled := []byte(cursorOf(""))
	mangled[len(mangled)/2] ^= 1
	other := *numbered.Cut(paging.Page{Limit: 1}, []int64{1, 2}, 0).Pagination.NextCursor
	for query, want := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=ten&offset=-1": "limit offset", "offset=100001": "offset", "limit=99999999999999999999": "limit", "limit=1e1": "limit",
		"sort=size": "sort", "sort=%2Bname": "sort", "sort=name,created_at": "sort",
		"created_after=yesterday&created_before=soon": "created_after created_before",
		"name=%00": "name", "name=%ff": "name", "name=" + strings.Repeat("a", 1001): "name",
		"cursor=!!": "cursor", "cursor=YQ": "cursor", "cursor=" + string(mangled): "cursor", "cursor=" + other: "cursor", "cursor=" + strings.Repeat("A", 5000): "cursor",
		"sort=name&cursor=" + cursorOf(""): "cursor", "offset=3&cursor=" + cursorOf(""): "offset",
	} {
		if _, bad := parse(query); strings.Join(bad, " ") != want {
			t.Errorf("%q: %v, want %s", query, bad, want)
		}
	}
	_, details := things.Parse(url.Values{"sort": {"size"}})
	if details[0].Expected != "one of created_at, -created_at, name, -name" {
		t.Error(details)
	}
}

func TestAPageIsCutAndSaysWhereItEnds(t *testing.T) {
	t.Parallel()
	full := numbered.Cut(paging.Page{Limit: 2}, []int64{9, 8, 7}, 0)
	if !slices.Equal(full.Data, []int64{9, 8}) || !full.Pagination.HasMore || full.Pagination.Total != nil || full.Pagination.Offset != nil {
		t.Errorf("%+v", full)
	}
	p, details := numbered.Parse(url.Values{"cursor": {*full.Pagination.NextCursor}, "offset": {"x"}}) // a log has no offset
	if p.After.Value != "8" || details != nil {
		t.Errorf("%+v %v", p, details)
	}
	last := things.Cut(paging.Page{Limit: 2, Offset: 6}, nil, 6)
	if last.Data == nil || last.Pagination.HasMore || last.Pagination.NextCursor != nil || *last.Pagination.Total != 6 || *last.Pagination.Offset != 6 {
		t.Errorf("%+v", last)
	}
	if shown := paging.Map(full, func(n int64) string { return strings.Repeat("x", int(n)) }); len(shown.Data[1]) != 8 || !shown.Pagination.HasMore {
		t.Errorf("%+v", shown)
	}
}

// Whatever the query, a page is in bounds or refused, and a cursor that is accepted is
// the one that its place gives.
func FuzzParse(f *testing.F) {
	f.Add("limit=5&offset=3")
	f.Add("sort=-name&cursor=" + cursorOf("-name"))
	f.Add("created_after=2026-11-21&name=a")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 64, 8<<10, func() {
			if q, err := url.ParseQuery(s); err == nil {
				things.Parse(q)
			}
		})
		q, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		p, details := things.Parse(q)
		if p.Limit < 1 || p.Limit > paging.MaxLimit || p.Offset < 0 || p.Offset > paging.MaxOffset {
			t.Fatalf("%+v", p)
		}
		if len(details) == 0 && strings.HasSuffix(p.Sort, "name") && p.After != (paging.Place{}) {
			again := things.Cut(paging.Page{Limit: 1, Sort: p.Sort}, []thing{{ID: p.After.ID, Name: p.After.Value}, {}}, 0)
			if *again.Pagination.NextCursor != q.Get("cursor") {
				t.Fatalf("%+v is given as %s", p, *again.Pagination.NextCursor)
			}
		}
	})
}
