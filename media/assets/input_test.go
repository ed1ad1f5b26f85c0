package assets

import (
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/platform/apierror"
)

func TestAVideoIsNamedAfterItsFileUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, title, want string }{
		{"https://example.com/a/film.mp4?x=1", "", "film.mp4"},
		{"https://example.com/a/film.mp4", " Film ", "Film"},
		{"https://example.com", "", "Untitled"},
		{"https://example.com/", "", "Untitled"},
		{"https://example.com/" + strings.Repeat("a", 300), "", "Untitled"},
	} {
		a, err := Input{SourceURL: c.source, Title: c.title}.asset()
		if err != nil || a.Title != c.want || a.Status != Processing || a.Metadata == nil {
			t.Errorf("%s: %+v, %v", c.source, a, err)
		}
	}
}

func TestVideosThatAreRefused(t *testing.T) {
	t.Parallel()
	const good = "https://example.com/film.mp4"
	cases := map[string]struct {
		in   Input
		want decision.Code
	}{
		"no source":               {Input{Title: "x"}, decision.InvalidRequest},
		"not an address":          {Input{SourceURL: "film.mp4"}, decision.InvalidRequest},
		"a profile nobody knows":  {Input{SourceURL: good, Profile: "8k"}, decision.Transcode002},
		"that, and a bad title":   {Input{SourceURL: good, Profile: "8k", Title: "\x00"}, decision.InvalidRequest},
		"one for a transcoder":    {Input{SourceURL: good, Profile: "720p"}, ""},
		"the source as it is":     {Input{SourceURL: good, Profile: "source"}, ""},
		"labels with empty names": {Input{SourceURL: good, Metadata: map[string]string{"": "x"}}, decision.InvalidRequest},
	}
	for name, c := range cases {
		if _, err := c.in.asset(); apierror.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhichPartAClipIs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		start, end int64
		bad        string
	}{
		`{"vod_id":"v","start":10,"duration":5.5}`:                              {10_000, 15_500, ""},
		`{"vod_id":"v","start":10,"end":15.5}`:                                  {10_000, 15_500, ""},
		`{"stream_id":"s","duration":30}`:                                       {0, 30_000, ""},
		`{"source_url":"https://e.com/a","end":3600}`:                           {0, 3_600_000, ""},
		`{"vod_id":"v"}`:                                                        {0, 0, "duration"},
		`{"vod_id":"v","end":1,"duration":1}`:                                   {0, 0, "duration"},
		`{"vod_id":"v","start":-1,"duration":1}`:                                {0, 0, "start"},
		`{"vod_id":"v","start":1e300,"duration":1}`:                             {0, 0, "start"},
		`{"vod_id":"v","start":5,"end":5}`:                                      {5000, 5000, "end"},
		`{"vod_id":"v","duration":0}`:                                           {0, 0, "duration"},
		`{"vod_id":"v","duration":3601}`:                                        {0, 3_601_000, "duration"},
		`{"duration":1}`:                                                        {0, 1000, "source"},
		`{"vod_id":"v","stream_id":"s","duration":1}`:                           {0, 1000, "source"},
		`{"source_url":"ftp://e.com/a","duration":1}`:                           {0, 1000, "source_url"},
		`{"source_url":"x","vod_id":"v","start":-1,"title":"` + "\u0000" + `"}`: {0, 0, "title source source_url start"},
	}
	for body, c := range cases {
		var in ClipInput
		if err := json.Unmarshal([]byte(strings.ReplaceAll(body, "\u0000", `\u0000`)), &in); err != nil {
			t.Fatal(err)
		}
		a, err := in.asset()
		if got := fields(err); got != c.bad || a.StartMS != c.start || a.EndMS != c.end {
			t.Errorf("%s: %d to %d, bad: %q", body, a.StartMS, a.EndMS, got)
		}
	}
	if _, err := (ClipInput{VODID: "v", Start: math.NaN(), Duration: new(float64)}).asset(); fields(err) != "start" {
		t.Error(err)
	}
}

func fields(err error) string {
	var names []string
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		for _, d := range e.Details {
			names = append(names, d.Field)
		}
	}
	return strings.Join(names, " ")
}

func TestFiltersOfLists(t *testing.T) {
	t.Parallel()
	var f form.Form
	got := ParseFilter(&f, VOD, url.Values{"status": {"ready,failed"}, "stream_id": {"strm_1"}})
	if f.Err() != nil || len(got.Statuses) != 2 || got.StreamID != "strm_1" || got.Kind != VOD {
		t.Errorf("%+v %v", got, f.Err())
	}
	ParseFilter(&f, VOD, url.Values{"status": {"done"}, "stream_id": {"\x00"}, "limit": {"0"}})
	ParseFilter(&f, VOD, url.Values{"status": {"ready,ready,ready,ready,ready"}})
	if got := fields(f.Err()); got != "limit stream_id status status" {
		t.Error(got)
	}
}

// Whatever the body, a clip is refused or has a length of its own.
func FuzzClipInput(f *testing.F) {
	f.Add(`{"vod_id":"v","start":10,"duration":5.5}`)
	f.Fuzz(func(t *testing.T, body string) {
		var in ClipInput
		if json.Unmarshal([]byte(body), &in) != nil {
			return
		}
		if a, err := in.asset(); err == nil && (a.StartMS < 0 || a.EndMS <= a.StartMS || a.EndMS-a.StartMS > MaxClip*1000) {
			t.Fatalf("%+v", a)
		}
	})
}
