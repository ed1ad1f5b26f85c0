// Package assets holds what is stored and can be played again: videos on demand,
// recordings of streams, and clips of both. A clip is cut out of its source's file.
package assets

import (
	"fmt"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/mp4"
)

// Kind is what an asset is.
type Kind string

// The kinds of assets, and the prefixes of their ids.
const (
	VOD       Kind = "vod"
	Recording Kind = "recording"
	Clip      Kind = "clip"
)

// Prefix is the prefix of the kind's ids.
func (k Kind) Prefix() string {
	if k == Recording {
		return "rec"
	}
	return string(k)
}

// Status is where an asset is in its life: a recording begins in InRecording, the
// others in Processing; each ends in Ready or Failed.
type Status string

// The states of an asset.
const (
	InRecording Status = "recording"
	Processing  Status = "processing"
	Ready       Status = "ready"
	Failed      Status = "failed"
)

// Statuses lists every state.
var Statuses = []string{string(InRecording), string(Processing), string(Ready), string(Failed)}

// Asset is one row of media_assets. Texts that do not apply are empty, numbers
// zero.
type Asset struct {
	ID           string            `db:"id"`
	Owner        string            `db:"owner"`
	Account      string            `db:"account"` // who hears of it
	Kind         Kind              `db:"kind"`
	Title        string            `db:"title"`
	Status       Status            `db:"status"`
	SourceURL    string            `db:"source_url"`
	SourceID     string            `db:"source_id"`  // of a clip
	StreamID     string            `db:"stream_id"`  // of a recording, and of a clip of one
	SessionID    string            `db:"session_id"` // of a recording
	StartMS      int64             `db:"start_ms"`   // of a clip, in its source
	EndMS        int64             `db:"end_ms"`
	Precise      bool              `db:"precise"` // a clip is to begin and end exactly there
	Cut          bool              `db:"cut"`     // the file is the clip's own part; older clips share their source's
	Plan         string            `db:"plan"`    // of its owner when it was made
	FileID       string            `db:"file_id"`
	Format       string            `db:"format"`
	DurationMS   int64             `db:"duration_ms"`
	Width        int               `db:"width"`
	Height       int               `db:"height"`
	VideoCodec   string            `db:"video_codec"`
	AudioCodec   string            `db:"audio_codec"`
	FileSize     int64             `db:"file_size"`
	ErrorCode    decision.Code     `db:"error_code"`
	ErrorMessage string            `db:"error_message"`
	Metadata     map[string]string `db:"metadata"`
	CreatedAt    time.Time         `db:"created_at"`
	UpdatedAt    time.Time         `db:"updated_at"`
	RetryUntil   *time.Time        `db:"retry_until"` // of a recording: the bytes are kept until then, for another try; nil: they are not
}

// Resolution is the size of the picture, such as 1920x1080; "" if there is none.
func (a Asset) Resolution() string {
	if a.Width == 0 || a.Height == 0 {
		return ""
	}
	return fmt.Sprintf("%dx%d", a.Width, a.Height)
}

// Stored is a file that has arrived, and what it says of itself.
type Stored struct {
	FileID string
	Size   int64
	Info   mp4.Info
}

// Complete makes a ready asset of a and its file. A clip has yet to be cut out of it,
// and fails if its place lies beyond the end.
func (a *Asset) Complete(s Stored) {
	a.Status, a.FileID, a.FileSize, a.RetryUntil = Ready, s.FileID, s.Size, nil
	a.Format, a.Width, a.Height = s.Info.Format, s.Info.Width, s.Info.Height
	a.VideoCodec, a.AudioCodec = s.Info.VideoCodec, s.Info.AudioCodec
	length := s.Info.Duration.Milliseconds()
	if a.Kind != Clip {
		a.DurationMS = length
		return
	}
	a.take(length)
}

// UpdateFrom gives a clip what it is to be cut from: its source's file, which it holds
// until then. It fails with its source, and waits until that is ready.
func (a *Asset) UpdateFrom(source Asset) {
	switch source.Status {
	case Ready:
		a.Status, a.FileID, a.Format = Ready, source.FileID, source.Format
		a.Width, a.Height, a.VideoCodec, a.AudioCodec = source.Width, source.Height, source.VideoCodec, source.AudioCodec
		a.StreamID = source.StreamID
		a.take(source.DurationMS)
	case Failed:
		a.Fail(source.ErrorCode, "The source of the clip failed: "+source.ErrorMessage)
	default:
		a.Status, a.StreamID = Processing, source.StreamID
	}
}

// take has a clip wait for being cut out of the file that it has. length is that of
// the file, in milliseconds; 0: unknown, and then the caller is believed.
func (a *Asset) take(length int64) {
	if length > 0 && a.EndMS > length {
		a.Fail(decision.InvalidRequest, fmt.Sprintf("The clip ends at %.3f s, its source at %.3f s.", seconds(a.EndMS), seconds(length)))
		return
	}
	a.Status, a.DurationMS = Processing, a.EndMS-a.StartMS
}

// uncut reports whether a is a clip that waits for being cut out of the file it has.
func (a *Asset) uncut() bool { return a.Kind == Clip && a.Status == Processing && a.FileID != "" }

// cutTo makes a ready clip of a and its own file.
func (a *Asset) cutTo(s Stored) {
	a.Status, a.Cut, a.FileID, a.FileSize = Ready, true, s.FileID, s.Size
	a.Format, a.Width, a.Height = s.Info.Format, s.Info.Width, s.Info.Height
	a.VideoCodec, a.AudioCodec = s.Info.VideoCodec, s.Info.AudioCodec
	if length := s.Info.Duration.Milliseconds(); length > 0 {
		a.DurationMS = length
	}
}

// Fail ends a without a file.
func (a *Asset) Fail(code decision.Code, message string) {
	a.Status, a.FileID, a.ErrorCode, a.ErrorMessage, a.RetryUntil = Failed, "", code, message, nil
}

// seconds turns the milliseconds of the database into the seconds of the API.
func seconds(ms int64) float64 { return float64(ms) / 1000 }
