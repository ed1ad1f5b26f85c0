package assets

import (
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
)

// linkTTL is how long the URLs in an answer hold.
const linkTTL = 6 * time.Hour

// View is an asset as callers see it. Numbers and texts that are not known, or
// not yet, are null.
type View struct {
	ID          string            `json:"id"`
	Title       string            `json:"title"`
	Status      Status            `json:"status"`
	State       Status            `json:"state"` // the same, under the name that guides use
	SourceURL   *string           `json:"source_url"`
	Duration    *float64          `json:"duration"` // seconds
	FileSize    *int64            `json:"file_size"`
	Format      *string           `json:"format"`
	Resolution  *string           `json:"resolution"`
	VideoCodec  *string           `json:"video_codec"`
	AudioCodec  *string           `json:"audio_codec"`
	PlaybackURL *string           `json:"playback_url"` // signed, for six hours, as the next
	DASH        *string           `json:"dash_url"`     // signed likewise; null where the file has no part of its own
	Thumbnail   *string           `json:"thumbnail_url"`
	Error       *FailureView      `json:"error"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`

	StreamID *string  `json:"stream_id,omitempty"` // recordings, and clips of them
	SourceID *string  `json:"source_id,omitempty"` // clips
	Start    *float64 `json:"start,omitempty"`     // clips: seconds
	End      *float64 `json:"end,omitempty"`

	StatusURL *string `json:"status_url,omitempty"` // signed; in answers to a paying agent, which has no key to ask with
}

// FailureView says why an asset failed.
type FailureView struct {
	Code    decision.Code `json:"code"`
	Message string        `json:"message"`
	// RetryUntil is until when POST /v1/recordings/{id}/retry tries again.
	RetryUntil *time.Time `json:"retry_until,omitempty"`
}

// DownloadView is one file that can be downloaded.
type DownloadView struct {
	Profile    string    `json:"profile"` // source: the file as it came
	Format     string    `json:"format"`
	Resolution *string   `json:"resolution"`
	FileSize   int64     `json:"file_size"`
	URL        string    `json:"url"` // signed
	ExpiresAt  time.Time `json:"expires_at"`
}

// view shows an asset. key signs its address.
func (v Service) view(a Asset, key []byte) View {
	out := View{ID: a.ID, Title: a.Title, Status: a.Status, State: a.Status, SourceURL: some(a.SourceURL),
		Duration: positive(a.DurationMS), FileSize: some(a.FileSize), Format: some(a.Format), Resolution: some(a.Resolution()),
		VideoCodec: some(a.VideoCodec), AudioCodec: some(a.AudioCodec), Metadata: a.Metadata,
		CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(), StreamID: some(a.StreamID), SourceID: some(a.SourceID)}
	if a.Status == Ready {
		out.PlaybackURL = some(v.link(a, key, linkTTL))
		if v.Probe.Available() && (a.Kind != Clip || a.Cut) {
			out.DASH = some(strings.Replace(v.address(a.ID, key, linkTTL), "?", "/index.mpd?", 1))
		}
		if v.FFmpeg.Available() && a.Width > 0 && v.Films.Fits(a.FileSize) {
			out.Thumbnail = some(below(v.address(a.ID, key, linkTTL), stillFile))
		}
	}
	if a.Status == Failed {
		out.Error = &FailureView{Code: a.ErrorCode, Message: a.ErrorMessage}
		if a.retryable(v.Now()) {
			until := a.RetryUntil.UTC()
			out.Error.RetryUntil = &until
		}
	}
	if a.Kind == Clip {
		start, end := seconds(a.StartMS), seconds(a.EndMS)
		out.Start, out.End = &start, &end
	}
	return out
}

// below is the address of a file below that of an asset's bytes.
func below(address, file string) string { return strings.Replace(address, "?", "/"+file+"?", 1) }

// some is nil for a zero value, else a pointer to it.
func some[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// positive is a duration in seconds, or null where it is not known.
func positive(ms int64) *float64 { return some(seconds(ms)) }

// Fragment is the place of a clip in a file that it shares, as the end of a URL (W3C Media
// Fragments).
func (a Asset) Fragment() string {
	if a.Kind != Clip || a.Cut {
		return ""
	}
	at := func(ms int64) string { return strconv.FormatFloat(seconds(ms), 'f', -1, 64) }
	return "#t=" + at(a.StartMS) + "," + at(a.EndMS)
}
