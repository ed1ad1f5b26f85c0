// Package editor makes new videos of an account's films by a timeline: clips one
// after the other with transitions, sound beside them, and texts and pictures above
// them. A timeline is checked whole and turned into a plan of frames; a filter graph is
// built of the plan's numbers alone, so that no text of a caller is ever part of one.
package editor

import (
	"encoding/json"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
)

// Bounds of a timeline. Each clip and sound is a file that ffmpeg has open when it makes
// the sound, of which its sandbox allows 64.
const (
	maxClips    = 32
	maxSounds   = 4
	maxOverlays = 16
	maxLength   = 3600.0 // seconds, of the whole
	maxPosition = 30 * 24 * 3600.0
	maxFade     = 10.0     // seconds, of a transition
	maxSources  = 16 << 30 // bytes, of the files that are read
	maxText     = 200      // characters
	maxPicture  = 512 << 10
	maxSide     = 4096 // pixels, of a picture
	maxTitle    = 200
)

// value is a field of a timeline. One of the wrong type is kept, and reported with its
// place when the timeline is checked.
type value[T any] struct {
	set, bad bool
	v        T
}

// UnmarshalJSON reads the value. null counts as absent.
func (f *value[T]) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	f.set = true
	f.bad = json.Unmarshal(raw, &f.v) != nil
	return nil
}

// MarshalJSON writes it as it was read.
func (f value[T]) MarshalJSON() ([]byte, error) { return json.Marshal(f.v) }

// IsZero reports whether it was absent.
func (f value[T]) IsZero() bool { return !f.set }

type (
	number = value[float64]
	text   = value[string]
	flag   = value[bool]
)

// Input is the body of POST /v1/editor/renders, and of previews.
type Input struct {
	Title    string            `json:"title"` // of the video; empty: Render
	Metadata map[string]string `json:"metadata"`
	Timeline Timeline          `json:"timeline"`
	Output   Output            `json:"output"`

	faults []decision.Detail // of its form, beside which check finds those of its values
}

// SetFaults has check fail with what is wrong with the form of the body too.
func (in *Input) SetFaults(list []decision.Detail) { in.faults = list }

// Timeline says what is seen and heard when. Times are seconds.
type Timeline struct {
	Clips    []Clip    `json:"clips"`
	Audio    []Sound   `json:"audio,omitzero"`
	Overlays []Overlay `json:"overlays,omitzero"`
	FadeIn   number    `json:"fade_in,omitzero"` // from black and silence, at the beginning
	FadeOut  number    `json:"fade_out,omitzero"`
}

// Clip is a part of a film. Clips follow one another.
type Clip struct {
	AssetID    text        `json:"asset_id,omitzero"`
	In         number      `json:"in,omitzero"`    // in the film
	Out        number      `json:"out,omitzero"`   // absent: its end
	Speed      number      `json:"speed,omitzero"` // 0.25 to 4; absent: 1
	Gain       number      `json:"gain,omitzero"`  // of its sound, dB
	Mute       flag        `json:"mute,omitzero"`
	Fit        text        `json:"fit,omitzero"`        // contain, with bars, or cover; absent: contain
	Transition *Transition `json:"transition,omitzero"` // from the clip before; absent: cut
}

// Transition is how one clip follows another. A crossfade shows both for its duration; a
// fade goes through black, with half of its duration in either.
type Transition struct {
	Type     text   `json:"type,omitzero"`
	Duration number `json:"duration,omitzero"` // absent: 1
}

// Sound is a part of a film's sound, mixed to that of the clips.
type Sound struct {
	AssetID text   `json:"asset_id,omitzero"`
	In      number `json:"in,omitzero"`
	Out     number `json:"out,omitzero"`
	Start   number `json:"start,omitzero"` // on the timeline
	Gain    number `json:"gain,omitzero"`  // dB
}

// Overlay is a text or a picture above the clips.
type Overlay struct {
	Type       text   `json:"type,omitzero"`       // text or image
	Text       text   `json:"text,omitzero"`       // of a text; lines are separated by \n
	Size       number `json:"size,omitzero"`       // height of a line, as a share of the picture's; absent: 0.06
	Color      text   `json:"color,omitzero"`      // #rrggbb; absent: white
	Background text   `json:"background,omitzero"` // #rrggbb; absent: none
	Image      text   `json:"image,omitzero"`      // bytes of a PNG or JPEG in base64
	Width      number `json:"width,omitzero"`      // of an image, as a share of the picture's; absent: its own
	X          number `json:"x,omitzero"`          // 0: at the left edge, 1: at the right, absent: 0.5
	Y          number `json:"y,omitzero"`          // 0: at the top, 1: at the bottom, absent: 0.5
	Start      number `json:"start,omitzero"`      // on the timeline
	End        number `json:"end,omitzero"`        // absent: the end
	Opacity    number `json:"opacity,omitzero"`    // 0 to 1; absent: 1
}

// Output is the form of the video. What is absent is as in the first clip, and 30
// pictures a second.
type Output struct {
	Width     number `json:"width,omitzero"`
	Height    number `json:"height,omitzero"`
	FrameRate number `json:"frame_rate,omitzero"`
}

// rates are the frame rates that can be asked for.
var rates = map[float64]ffmpeg.Rate{
	10: {Num: 10, Den: 1}, 12: {Num: 12, Den: 1}, 15: {Num: 15, Den: 1}, 23.976: {Num: 24000, Den: 1001}, 24: {Num: 24, Den: 1}, 25: {Num: 25, Den: 1},
	29.97: {Num: 30000, Den: 1001}, 30: {Num: 30, Den: 1}, 48: {Num: 48, Den: 1}, 50: {Num: 50, Den: 1}, 59.94: {Num: 60000, Den: 1001}, 60: {Num: 60, Den: 1},
}

const rateList = "one of 10, 12, 15, 23.976, 24, 25, 29.97, 30, 48, 50, 59.94, 60"
