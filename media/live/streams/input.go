package streams

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/http/paging"
)

// MaxTitle bounds a title, in characters.
const MaxTitle = 200

// maxThreshold bounds a viewer threshold.
const maxThreshold = 100_000_000

// Protocols are the ones a stream may be published with.
var Protocols = []string{"rtmp", "webrtc", "srt", "moq"}

// absent are protocols that the platform has a name for and publishers cannot come
// with.
var absent = []string{"hls", "dash", "ndi", "dante", "omt"}

// broadcast are those of them by which a stream of any protocol is given a source.
var broadcast = []string{"dante", "ndi", "omt"}

// Policies say who may watch: everyone, or bearers of a signed token.
var Policies = []string{"public", "signed"}

// Qualities are the profiles that settings.quality may name. "source" leaves
// the picture as it comes, "auto" leaves the choice to the engine.
var Qualities = []string{"source", "auto", "low", "medium", "high", "240p", "360p", "480p", "720p", "720p60", "1080p", "1080p60", "1440p", "2160p"}

// Input is the body of POST and PATCH /v1/streams. A field that is absent, or
// null, has its default on creation and stays as it is on change.
type Input struct {
	Title          *string            `json:"title"`
	Protocol       *string            `json:"protocol"`
	Recording      *RecordingInput    `json:"recording"`
	PlaybackPolicy *string            `json:"playback_policy"`
	Settings       *Settings          `json:"settings"`
	Threshold      *int               `json:"viewer_threshold"` // viewers at once to be told of; 0: none
	Metadata       *map[string]string `json:"metadata"`
}

// RecordingInput is Input.Recording.
type RecordingInput struct {
	Enabled *bool `json:"enabled"`
}

// Settings are the wishes of a caller or a schedule for the encoder. An empty
// quality or bitrate is no wish.
type Settings struct {
	Quality *string `json:"quality"`
	Bitrate *string `json:"bitrate"` // 4500k, 4500kbps, 4.5M, 4.5Mbps; a bare number is kbit/s
}

// Defaults is a stream before a caller has said anything.
func Defaults() Stream {
	return Stream{Protocol: "rtmp", Status: Idle, PlaybackPolicy: "public", Metadata: map[string]string{}}
}

// Apply checks in and puts it into s; every bad field goes to f, and s is then
// not to be used.
func (in Input) Apply(f *form.Form, s *Stream, l plans.Limits) {
	set(&s.Title, in.Title)
	s.Title = strings.TrimSpace(s.Title)
	f.Text("title", s.Title, MaxTitle)
	set(&s.Protocol, in.Protocol)
	if slices.Contains(absent, s.Protocol) {
		expected := "one of " + strings.Join(Protocols, ", ")
		if slices.Contains(broadcast, s.Protocol) {
			expected += "; a source by " + s.Protocol + " is given to any stream by POST /v1/" + s.Protocol + "/inputs"
		}
		f.FailAs(decision.NotImplemented, "protocol", "is none that publishers come with", expected)
	} else {
		f.OneOf("protocol", s.Protocol, Protocols)
	}
	if in.Recording != nil {
		set(&s.Recording, in.Recording.Enabled)
	}
	set(&s.PlaybackPolicy, in.PlaybackPolicy)
	f.OneOf("playback_policy", s.PlaybackPolicy, Policies)
	if in.Settings != nil {
		in.Settings.Apply(f, s, l)
	}
	set(&s.Threshold, in.Threshold)
	f.Range("viewer_threshold", s.Threshold, 0, maxThreshold)
	if in.Metadata != nil && *in.Metadata != nil {
		f.Metadata("metadata", *in.Metadata)
		s.Metadata = *in.Metadata
	}
}

// Apply is Input.Apply for settings alone.
func (in Settings) Apply(f *form.Form, s *Stream, l plans.Limits) {
	set(&s.Quality, in.Quality)
	if s.Quality != "" && !slices.Contains(Qualities, s.Quality) {
		f.FailAs(decision.Transcode002, "settings.quality", "is not a known profile", "one of "+strings.Join(Qualities, ", "))
	}
	if in.Bitrate == nil {
		return
	}
	kbps, ok := ParseBitrate(*in.Bitrate)
	switch {
	case !ok:
		f.Fail("settings.bitrate", "is not a bitrate", "string such as 4500k or 4.5M")
	case l.BitrateKbps > 0 && kbps > l.BitrateKbps:
		f.FailAs(decision.Stream002, "settings.bitrate", "is above the plan's limit", "at most "+FormatBitrate(l.BitrateKbps))
	}
	s.BitrateKbps = kbps
}

// set overwrites dst where the caller has said something.
func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// ParseBitrate reads a bitrate as kbit/s. Units are k, kbps, M and Mbps in either
// case; a bare number is kbit/s, as encoders count. "" is 0: no wish. It takes time and
// memory linear in s, which the body's bound bounds.
func ParseBitrate(s string) (kbps int, ok bool) {
	if s == "" {
		return 0, true
	}
	number := strings.ToLower(s)
	number = strings.TrimSuffix(number, "bps")
	unit := 1.0
	if n, found := strings.CutSuffix(number, "m"); found {
		number, unit = n, 1000
	} else {
		number = strings.TrimSuffix(number, "k")
	}
	n, err := strconv.ParseFloat(number, 64)
	const most = 1e9 // kbit/s: far beyond any encoder, far below overflow
	if err != nil || strings.Trim(number, "0123456789.") != "" || n*unit < 1 || n*unit > most {
		return 0, false
	}
	return int(math.Round(n * unit)), true
}

// FormatBitrate writes kbit/s in the form that ParseBitrate reads: 4500k.
func FormatBitrate(kbps int) string { return strconv.Itoa(kbps) + "k" }

// Filter is what a list of streams is narrowed to.
type Filter struct {
	Page     paging.Page
	Statuses []string // empty: all
}

// ParseFilter reads the query of GET /v1/streams; every bad parameter goes to f.
func ParseFilter(f *form.Form, q url.Values) Filter {
	p, details := List.Parse(q)
	f.Add(details)
	out := Filter{Page: p}
	if text := q.Get("status"); text != "" {
		for s := range strings.SplitSeq(text, ",") {
			s = strings.TrimSpace(s)
			f.OneOf("status", s, Statuses)
			out.Statuses = append(out.Statuses, s)
			if len(out.Statuses) > len(Statuses) {
				f.Fail("status", "has too many values", "at most one of each")
				break
			}
		}
	}
	return out
}
