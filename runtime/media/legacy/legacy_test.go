package legacy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/runtime/media/assets"
)

func good(id string) Taken {
	return Taken{LegacyID: id, VODID: "vod_" + id, DurationMS: 1500, FileSize: 10, Status: assets.Ready, HereDurationMS: 1500, HereFileSize: 10}
}

func TestBothSidesAreSummed(t *testing.T) {
	t.Parallel()
	failed := good("2")
	failed.Status = assets.Failed
	there := []Video{{ID: "1", Duration: 1.5, Size: 10}, {ID: "2", Duration: 0.25, Size: 5}}
	want := Comparison{Legacy: Side{2, 1.75, 15}, Imported: Side{1, 1.5, 10}, Missing: []string{"2"}}
	if diff := cmp.Diff(want, Compare(there, []Taken{good("1"), failed}, false)); diff != "" {
		t.Error(diff)
	}
	if c := Compare(there[:1], []Taken{good("1")}, false); !c.Complete {
		t.Errorf("%+v", c)
	}
	if c := Compare(there[:1], []Taken{good("1")}, true); c.Complete {
		t.Error("complete, though nobody looked at all of it")
	}
}

func TestWhatDidNotArriveAsItWas(t *testing.T) {
	t.Parallel()
	change := func(f func(*Taken)) Taken { t := good("1"); f(&t); return t }
	cases := map[string]Taken{
		"":              good("1"),
		"refused":       change(func(t *Taken) { t.VODID, t.Error = "", "bad" }),
		"deleted":       change(func(t *Taken) { t.Status = "" }),
		"failed":        change(func(t *Taken) { t.Status, t.HereError = assets.Failed, "gone" }),
		"is processing": change(func(t *Taken) { t.Status = assets.Processing }),
		"bytes":         change(func(t *Taken) { t.HereFileSize = 9 }),
		"lasts":         change(func(t *Taken) { t.HereDurationMS = 2501 }),
	}
	for want, taken := range cases {
		v := Validate([]Taken{taken})
		if v.Valid != (want == "") || want != "" && !strings.Contains(v.Problems[0].Issue, want) {
			t.Errorf("%q: %+v", want, v)
		}
	}
	for _, fine := range []Taken{change(func(t *Taken) { t.HereDurationMS = 2500 }), change(func(t *Taken) { t.FileSize, t.DurationMS = 0, 0 })} {
		if v := Validate([]Taken{fine}); !v.Valid {
			t.Errorf("%+v", v)
		}
	}
}

func TestProgressAndStatus(t *testing.T) {
	t.Parallel()
	busy, gone := good("1"), good("2")
	busy.Status, gone.Status = assets.Processing, ""
	p := Count([]Taken{good("0"), busy, gone})
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
		if p, err := parsePage([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", raw, p)
		}
	}
	for _, raw := range []string{"", "{}", `{"webhooks":[` + strings.Repeat(`{},`, 100) + `{}]}`} {
		if _, err := parseWebhooks([]byte(raw)); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add([]byte(`{"videos":[{"id":"a","title":"b","duration":1,"size":2,"download_url":"https://a.b/c"}],"next_cursor":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := parsePage(raw)
		for _, v := range p.Videos {
			if err != nil || v.ID == "" || v.Size < 0 || v.Duration < 0 || strings.ContainsRune(v.Title, 0) {
				t.Fatalf("%+v %v", v, err)
			}
		}
	})
}
