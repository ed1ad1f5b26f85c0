package legacy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/limits/growth"
)

func good(id string) Imported {
	return Imported{LegacyID: id, VODID: "vod_" + id, DurationMS: 1500, FileSize: 10, Status: assets.Ready, HereDurationMS: 1500, HereFileSize: 10}
}

// compare is what comes of a whole walk.
func compare(there []Video, here []Imported, partial bool) Comparison {
	c := NewComparing()
	for _, t := range here {
		c.Here(t)
	}
	c.There(there)
	return c.Done(partial)
}

func validate(here ...Imported) Validation {
	v := Validation{Valid: true}
	for _, t := range here {
		v.add(t)
	}
	return v
}

func TestBothSidesAreSummed(t *testing.T) {
	t.Parallel()
	failed := good("2")
	failed.Status = assets.Failed
	there := []Video{{ID: "1", Duration: 1.5, Size: 10}, {ID: "2", Duration: 0.25, Size: 5}}
	want := Comparison{Legacy: Side{2, 1.75, 15}, Imported: Side{1, 1.5, 10}, Missing: []string{"2"}}
	if diff := cmp.Diff(want, compare(there, []Imported{good("1"), failed}, false)); diff != "" {
		t.Error(diff)
	}
	if c := compare(there[:1], []Imported{good("1")}, false); !c.Complete {
		t.Errorf("%+v", c)
	}
	if c := compare(there[:1], []Imported{good("1")}, true); c.Complete {
		t.Error("complete, though nobody looked at all of it")
	}
}

func TestWhatDidNotArriveAsItWas(t *testing.T) {
	t.Parallel()
	change := func(f func(*Imported)) Imported { t := good("1"); f(&t); return t }
	cases := map[string]Imported{
		"":              good("1"),
		"refused":       change(func(t *Imported) { t.VODID, t.Error = "", "bad" }),
		"deleted":       change(func(t *Imported) { t.Status = "" }),
		"failed":        change(func(t *Imported) { t.Status, t.HereError = assets.Failed, "gone" }),
		"is processing": change(func(t *Imported) { t.Status = assets.Processing }),
		"bytes":         change(func(t *Imported) { t.HereFileSize = 9 }),
		"lasts":         change(func(t *Imported) { t.HereDurationMS = 2501 }),
	}
	for want, taken := range cases {
		v := validate(taken)
		if v.Valid != (want == "") || want != "" && !strings.Contains(v.Problems[0].Issue, want) {
			t.Errorf("%q: %+v", want, v)
		}
	}
	for _, fine := range []Imported{change(func(t *Imported) { t.HereDurationMS = 2500 }), change(func(t *Imported) { t.FileSize, t.DurationMS = 0, 0 })} {
		if v := validate(fine); !v.Valid {
			t.Errorf("%+v", v)
		}
	}
}

func TestProgressAndStatus(t *testing.T) {
	t.Parallel()
	p := progress(3, 1, 1)
	if p != (Progress{Total: 3, Processing: 1, Ready: 1, Failed: 1, Percentage: 66.7}) {
		t.Errorf("%+v", p)
	}
	cases := []struct {
		state string
		busy  int
		want  string
	}{{stateNone, 0, "connected"}, {stateRunning, 0, "importing"}, {stateDone, 1, "importing"}, {stateDone, 0, "completed"}, {stateFailed, 1, "failed"}}
	for _, c := range cases {
		if got := status(Connection{State: c.state}, Progress{Processing: c.busy}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestEventsAreTranslated(t *testing.T) {
	t.Parallel()
	ours, unknown := Translate([]string{"video.ready", "ready", "stream.started", "odd"})
	if diff := cmp.Diff([]string{"stream.started", "vod.ready"}, ours); diff != "" || len(unknown) != 1 {
		t.Error(diff, unknown)
	}
}

func TestAnswersThatAreNotAsDocumented(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "[]", "{}", `{"videos":null}`, `{"videos":[{}]}`, `{"videos":[{"id":"a\u0000"}]}`, `{"videos":[{"id":"a","size":-1}]}`,
		`{"videos":[{"id":"a","duration":1e300}]}`, `{"videos":[],"next_cursor":"` + strings.Repeat("x", 1001) + `"}`} {
		if p, err := ParsePage([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", raw, p)
		}
	}
	for _, raw := range []string{"", "{}", `{"webhooks":[` + strings.Repeat(`{},`, 1000) + `{}]}`} {
		if _, err := ParseWebhooks([]byte(raw)); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// A provider that fills every page costs no more than one of its pages.
func TestAComparisonKeepsLittleOfWhatAProviderSays(t *testing.T) {
	var before, after runtime.MemStats // no t.Parallel: it looks at the heap
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := NewComparing()
	for n := range maxPages {
		raw := fmt.Appendf(nil, `{"videos":[{"id":"%d","title":"%s"}]}`, n, strings.Repeat("x", maxPage-100))
		page, err := ParsePage(raw)
		if err != nil {
			t.Fatal(err)
		}
		c.There(page.Videos)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<20 {
		t.Errorf("%d bytes are kept of %d pages", kept, maxPages)
	}
	if got := c.Done(false); got.Legacy.Videos != maxPages || len(got.Missing) != maxListed {
		t.Errorf("%+v", got)
	}
}

// shapes are answers of about n bytes that cost a careless reader most.
var shapes = map[string]func(n int) string{
	"empty videos": func(n int) string { return `{"videos":[` + strings.Repeat(`{},`, n/3) + `{}]}` },
	"few videos":   func(n int) string { return `{"videos":[{"id":"a","title":"` + strings.Repeat("x", n) + `"}]}` },
	"no UTF-8":     func(n int) string { return `{"videos":[{"id":"a","title":"` + strings.Repeat("\xff", n) + `"}]}` },
	"escapes":      func(n int) string { return `{"videos":[{"id":"a","title":"` + strings.Repeat(`\ud800`, n/6) + `"}]}` },
	"names":        func(n int) string { return `{"videos":[{"id":"a"` + strings.Repeat(`,"id":"b"`, n/9) + `}]}` },
	"depth":        func(n int) string { return `{"videos":` + strings.Repeat("[", n) },
	"blanks":       func(n int) string { return `{"videos":[` + strings.Repeat(" ", n) + `]}` + strings.Repeat(" ", n) },
	"other lists":  func(n int) string { return `{"videos":[],"x":[` + strings.Repeat(`{},`, n/3) + `{}]}` },
	"a long name":  func(n int) string { return `{"` + strings.Repeat("x", n) + `":1}` },
}

func TestWhatAnAnswerCosts(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{32 << 10, 128 << 10} {
			raw := []byte(shape(n))
			growth.Linear(t, len(raw), 16, 256<<10, func() { _, _ = ParsePage(raw); _, _ = ParseWebhooks(raw) })
			if t.Failed() {
				t.Fatal(name, n)
			}
		}
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add([]byte(`{"videos":[{"id":"a","title":"b","duration":1,"size":2,"download_url":"https://a.b/c"}],"next_cursor":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 16, 256<<10, func() { _, _ = ParsePage(raw) })
		p, err := ParsePage(raw)
		for _, v := range p.Videos {
			if err != nil || v.ID == "" || v.Size < 0 || v.Duration < 0 || strings.ContainsRune(v.Title, 0) {
				t.Fatalf("%+v %v", v, err)
			}
		}
	})
}
