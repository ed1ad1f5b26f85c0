package streams

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
)

var limits = plans.Limits{BitrateKbps: 6000}

func apply(t *testing.T, body string, s Stream) (Stream, error) {
	t.Helper()
	var in Input
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	var f form.Form
	in.Apply(&f, &s, limits)
	return s, f.Err()
}

func TestAFullBodySetsEveryField(t *testing.T) {
	t.Parallel()
	got, err := apply(t, `{"title":" Show ","protocol":"srt","recording":{"enabled":true},"playback_policy":"signed",
		"settings":{"quality":"1080p","bitrate":"4.5M"},"viewer_threshold":5,"metadata":{"show":"42"}}`, Defaults())
	want := Stream{Title: "Show", Protocol: "srt", Status: Idle, Recording: true, PlaybackPolicy: "signed",
		Quality: "1080p", BitrateKbps: 4500, Threshold: 5, Metadata: map[string]string{"show": "42"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestATitleIsEnoughAndAnEmptyChangeChangesNothing(t *testing.T) {
	t.Parallel()
	s, err := apply(t, `{"title":"Show"}`, Defaults())
	if err != nil || s.Protocol != "rtmp" || s.Recording || s.PlaybackPolicy != "public" {
		t.Fatalf("%+v %v", s, err)
	}
	for _, body := range []string{`{}`, `{"title":null,"settings":{},"recording":{},"metadata":null}`} {
		again, err := apply(t, body, s)
		if diff := cmp.Diff(s, again); err != nil || diff != "" {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
}

func TestBadFieldsAreNamedTogetherWithTheirCode(t *testing.T) {
	t.Parallel()
	cases := []struct {
		body   string
		code   decision.Code
		fields string
	}{
		{`{}`, decision.InvalidRequest, "title"},
		{`{"title":"` + strings.Repeat("x", 201) + `"}`, decision.InvalidRequest, "title"},
		{`{"title":"","protocol":"hls","playback_policy":"secret","settings":{"quality":"8k","bitrate":"fast"},"metadata":{"":""}}`,
			decision.InvalidRequest, "title protocol playback_policy settings.quality settings.bitrate metadata"},
		{`{"title":"x","viewer_threshold":-1}`, decision.InvalidRequest, "viewer_threshold"},
		{`{"title":"x","settings":{"bitrate":"6001"}}`, decision.Stream002, "settings.bitrate"},
		{`{"title":"x","settings":{"quality":"8k"}}`, decision.Transcode002, "settings.quality"},
		{`{"title":"x","settings":{"quality":"8k","bitrate":"7M"}}`, decision.InvalidRequest, "settings.quality settings.bitrate"},
	}
	for _, c := range cases {
		_, err := apply(t, c.body, Defaults())
		e, ok := errors.AsType[*apierror.Error](err)
		if !ok || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.body, err, c.code)
			continue
		}
		var fields []string
		for _, d := range e.Details {
			fields = append(fields, d.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: %s, want %s", c.body, got, c.fields)
		}
	}
}

func TestBitrates(t *testing.T) {
	t.Parallel()
	good := map[string]int{"": 0, "4500": 4500, "4500k": 4500, "4500K": 4500, "4500kbps": 4500, "4.5M": 4500, "5Mbps": 5000}
	for text, want := range good {
		if got, ok := ParseBitrate(text); !ok || got != want {
			t.Errorf("%q: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"0", "-1", "fast", "k", "M", "4 500", "1e9", "0x10", "Inf", "NaN", "99999999999M", "4500g", "1.2.3"} {
		if n, ok := ParseBitrate(text); ok {
			t.Errorf("%q is taken as %d", text, n)
		}
	}
}

func FuzzParseBitrate(f *testing.F) {
	f.Add("4.5Mbps")
	f.Add("4500")
	f.Fuzz(func(t *testing.T, text string) {
		kbps, ok := ParseBitrate(text)
		if !ok || text == "" {
			return
		}
		if again, ok := ParseBitrate(FormatBitrate(kbps)); !ok || again != kbps {
			t.Fatalf("%q: %d reads back as %d", text, kbps, again)
		}
	})
}

func TestTheStatusFilter(t *testing.T) {
	t.Parallel()
	var f form.Form
	got := ParseFilter(&f, url.Values{"status": {"live, idle"}, "limit": {"3"}})
	if diff := cmp.Diff([]string{"live", "idle"}, got.Statuses); f.Err() != nil || diff != "" || got.Page.Limit != 3 {
		t.Error(f.Err(), diff)
	}
	for _, text := range []string{"dead", "live,", "live,live,live,live,live,live"} {
		var f form.Form
		if ParseFilter(&f, url.Values{"status": {text}}); f.Err() == nil {
			t.Errorf("status=%s is taken", text)
		}
	}
}
