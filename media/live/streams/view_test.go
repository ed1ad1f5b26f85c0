package streams

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/plans"
)

var endpoints = Endpoints{RTMP: "rtmp://in:1935/live", SRT: "srt://in:8890", WebRTC: "https://gw/v1/ingest", Playback: "https://gw/v1/playback", Available: true}

func sample() Stream {
	s := Defaults()
	s.ID, s.PlaybackID, s.Title, s.KeyHint, s.Version = "strm_1", "play_1", "Show", "wxyz", 7
	s.CreatedAt = time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600))
	return s
}

func TestAKeyStandsWhereEncodersTakeIt(t *testing.T) {
	t.Parallel()
	v := endpoints.ViewOf(sample(), "sk_secret")
	want := map[string]EndpointView{
		"rtmp":   {URL: "rtmp://in:1935/live", StreamKey: "play_1?key=sk_secret"},
		"srt":    {URL: "srt://in:8890", StreamKey: "publish:live/play_1:key:sk_secret"},
		"webrtc": {URL: "https://gw/v1/ingest/ing_1/whip", StreamKey: "sk_secret"},
	}
	for name, got := range map[string]EndpointView{"rtmp": v.Ingest.RTMP, "srt": v.Ingest.SRT, "webrtc": v.Ingest.WebRTC} {
		if got != want[name] {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.Contains(got.URL, "secret") {
			t.Errorf("%s: the key is in the address", name)
		}
	}
}

func TestWithoutItsTextAKeyIsNotShown(t *testing.T) {
	t.Parallel()
	v := endpoints.ViewOf(sample(), "")
	if v.Ingest.RTMP.StreamKey+v.Ingest.SRT.StreamKey+v.Ingest.WebRTC.StreamKey != "" || v.Ingest.StreamKeyHint != "wxyz" {
		t.Errorf("%+v", v.Ingest)
	}
}

func TestWhatNobodyHasSetIsNull(t *testing.T) {
	t.Parallel()
	s := sample()
	v := endpoints.ViewOf(s, "")
	if v.Settings.Quality != nil || v.Settings.Bitrate != nil || v.Threshold != nil || v.Metadata == nil {
		t.Errorf("%+v", v)
	}
	s.Quality, s.BitrateKbps, s.Threshold = "720p", 2500, 9
	v = endpoints.ViewOf(s, "")
	if *v.Settings.Quality != "720p" || *v.Settings.Bitrate != "2500k" || *v.Threshold != 9 {
		t.Errorf("%+v", v.Settings)
	}
	if v.CreatedAt.Location() != time.UTC || v.CreatedAt.Hour() != 12 {
		t.Errorf("not UTC: %s", v.CreatedAt)
	}
}

func TestTheIngestEndpointIsThatOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := sample()
	for protocol, want := range map[string]string{"rtmp": "rtmp://in:1935/live", "srt": "srt://in:8890", "webrtc": "https://gw/v1/ingest/ing_1/whip"} {
		s.Protocol = protocol
		if got := endpoints.endpoint(s); got != want {
			t.Errorf("%s: %s", protocol, got)
		}
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	s := sample()
	for header, want := range map[string]bool{"": true, "*": true, `"7"`: true, `"6", "7"`: true, `"6"`: false, "7": false, `W/"7"`: false, `"6",*`: true} {
		if got := matches(header, s); got != want {
			t.Errorf("If-Match: %s is %v", header, got)
		}
	}
}

func TestAStreamRemembersWhoItBelongsTo(t *testing.T) {
	t.Parallel()
	s := sample()
	s.Owner, s.Account, s.Plan = "acct_1", "acct_1", "pro"
	if o := s.By(); o.ID != "acct_1" || o.Account != "acct_1" || o.Plan != "pro" {
		t.Errorf("%+v", o)
	}
}

// Whatever the query, every status that is let through is one of ours.
func FuzzParseFilter(f *testing.F) {
	f.Add("status=live,idle&limit=5")
	f.Add("status=,,,,,")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		var form form.Form
		filter := ParseFilter(&form, q)
		if form.Err() != nil {
			return
		}
		for _, s := range filter.Statuses {
			if !strings.Contains(strings.Join(Statuses, " "), s) || s == "" {
				t.Fatalf("%q is let through", s)
			}
		}
	})
}

// Whatever the texts, what is stored of them fits the database's constraints.
func FuzzInput(f *testing.F) {
	f.Add("Show", "rtmp", "720p", "4500k", 3)
	f.Add(" ", "", "", "", -1)
	f.Fuzz(func(t *testing.T, title, protocol, quality, bitrate string, threshold int) {
		s := Defaults()
		var form form.Form
		in := Input{Title: &title, Protocol: &protocol, Settings: &Settings{Quality: &quality, Bitrate: &bitrate}, Threshold: &threshold}
		in.Apply(&form, &s, plans.Limits{BitrateKbps: 6000})
		if form.Err() != nil {
			return
		}
		n := len([]rune(s.Title))
		if n < 1 || n > MaxTitle || strings.ContainsRune(s.Title, 0) || s.BitrateKbps < 0 || s.BitrateKbps > 6000 || s.Threshold < 0 {
			t.Fatalf("%+v", s)
		}
	})
}
