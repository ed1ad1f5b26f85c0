package assets

import (
	"math"
	"net/url"
	"path"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/http/paging"
)

// MaxTitle bounds a title, in characters.
const MaxTitle = 200

// MaxClip bounds the length of a clip, in seconds.
const MaxClip = 3600

// maxPosition bounds a place in a video, in seconds: 30 days.
const maxPosition = 30 * 24 * 3600

// source is the profile of a video as it came, which needs no transcoder.
const source = "source"

// profileList names the profiles that need one.
func profileList() string { return "one of " + strings.Join(ffmpeg.ProfileNames(), ", ") }

// Input is the body of POST /v1/vod.
type Input struct {
	SourceURL string            `json:"source_url"`
	Title     string            `json:"title"`   // empty: the last part of the URL's path
	Profile   string            `json:"profile"` // of a rendition to be made; empty or source: none
	Metadata  map[string]string `json:"metadata"`
}

// original reports whether no rendition is asked for.
func (in Input) original() bool { return in.Profile == "" || in.Profile == source }

// asset checks in and makes an asset of it. It fails with TRANSCODE_002 for a
// profile that nobody knows.
func (in Input) asset() (Asset, error) {
	var f form.Form
	a := Asset{Kind: VOD, Status: Processing, SourceURL: in.SourceURL, Metadata: labels(in.Metadata)}
	f.URL("source_url", in.SourceURL)
	a.Title = title(in.Title, in.SourceURL)
	f.Text("title", a.Title, MaxTitle)
	f.Metadata("metadata", in.Metadata)
	if _, ok := ffmpeg.ProfileOf(in.Profile); !ok && !in.original() {
		f.FailAs(decision.Transcode002, "profile", "is not a known profile", profileList()+", or "+source)
	}
	return a, f.Err()
}

// title falls back to the file name in the address.
func title(given, source string) string {
	given = strings.TrimSpace(given)
	if given != "" {
		return given
	}
	u, err := url.Parse(source)
	if err != nil {
		return "Untitled"
	}
	name := strings.TrimSpace(path.Base(u.Path))
	if name == "" || name == "/" || name == "." || len(name) > MaxTitle {
		return "Untitled"
	}
	return strings.ToValidUTF8(name, "")
}

// labels makes sure that metadata is an object, never null.
func labels(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// ClipInput is the body of POST /v1/clips. Exactly one source is named, and the
// end of the clip by end or by duration. Times are seconds.
type ClipInput struct {
	StreamID    string            `json:"stream_id"` // its latest recording
	RecordingID string            `json:"recording_id"`
	VODID       string            `json:"vod_id"`
	SourceURL   string            `json:"source_url"`
	Start       float64           `json:"start"`
	End         *float64          `json:"end"`
	Duration    *float64          `json:"duration"`
	Precise     bool              `json:"precise"` // begin and end exactly there; else at whole pictures
	Title       string            `json:"title"`   // empty: Clip
	Metadata    map[string]string `json:"metadata"`
}

// asset checks in and makes a clip of it, whose source is yet to be found.
func (in ClipInput) asset() (Asset, error) {
	var f form.Form
	a := Asset{Kind: Clip, Status: Processing, Title: strings.TrimSpace(in.Title), SourceURL: in.SourceURL, Precise: in.Precise, Metadata: labels(in.Metadata)}
	if a.Title == "" {
		a.Title = "Clip"
	}
	f.Text("title", a.Title, MaxTitle)
	f.Metadata("metadata", in.Metadata)
	in.checkSource(&f)
	a.StartMS, a.EndMS = in.times(&f)
	return a, f.Err()
}

// checkSource wants exactly one source. Whether it is there is for the database
// to say.
func (in ClipInput) checkSource(f *form.Form) {
	named := 0
	for _, s := range []string{in.StreamID, in.RecordingID, in.VODID, in.SourceURL} {
		if s != "" {
			named++
		}
	}
	if named != 1 {
		f.Fail("source", "names not exactly one source", "one of stream_id, recording_id, vod_id, source_url")
	}
	if in.SourceURL != "" {
		f.URL("source_url", in.SourceURL)
	}
}

// times returns the bounds of the clip in milliseconds. The comparisons are
// written so that NaN, which is less than nothing and not greater either, fails
// them.
func (in ClipInput) times(f *form.Form) (start, end int64) {
	if !(in.Start >= 0 && in.Start <= maxPosition) {
		f.Fail("start", "is out of range", "seconds from 0 to 2592000")
		return 0, 0
	}
	var length float64
	field := "duration"
	switch {
	case in.End != nil && in.Duration != nil:
		f.Fail("duration", "cannot be combined with end", "one of end, duration")
		return 0, 0
	case in.End != nil:
		field, length = "end", *in.End-in.Start
	case in.Duration != nil:
		length = *in.Duration
	default:
		f.Fail("duration", "is missing", "seconds, or end")
		return 0, 0
	}
	if !(length >= 0.001 && length <= MaxClip) {
		f.Fail(field, "is out of range", "a clip of more than 0 and at most 3600 seconds")
	}
	start = int64(math.Round(in.Start * 1000))
	return start, start + int64(math.Round(length*1000))
}

// Filter is what a list of assets is narrowed to.
type Filter struct {
	Kind     Kind
	Page     paging.Page
	Statuses []string // empty: all
	StreamID string   // empty: all
}

// ParseFilter reads the query of a list of this kind; every bad parameter goes
// to f.
func ParseFilter(f *form.Form, kind Kind, q url.Values) Filter {
	p, details := List.Parse(q)
	f.Add(details)
	out := Filter{Kind: kind, Page: p, StreamID: q.Get("stream_id")}
	if len(out.StreamID) > 64 || strings.ContainsRune(out.StreamID, 0) {
		f.Fail("stream_id", "is not a stream id", "strm_…")
	}
	if text := q.Get("status"); text != "" {
		out.Statuses = strings.Split(text, ",")
		if len(out.Statuses) > len(Statuses) {
			f.Fail("status", "has too many values", "at most one of each")
			return out
		}
		for _, s := range out.Statuses {
			f.OneOf("status", s, Statuses)
		}
	}
	return out
}
