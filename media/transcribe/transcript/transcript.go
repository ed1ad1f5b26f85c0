// Package transcript is what was said in a sound: text with times, and its forms as
// SubRip, WebVTT and plain text. It is pure.
package transcript

import (
	"math"
	"strings"
)

// How the times of words came about.
const (
	Measured  = "measured"  // by the engine
	Estimated = "estimated" // from the sound between the times of segments
)

// Transcript is what was said, in the form of OpenAI's verbose_json. Times are in
// seconds from the start of the sound.
type Transcript struct {
	Language string    `json:"language"` // BCP 47
	Duration float64   `json:"duration"`
	Text     string    `json:"text"`
	Segments []Segment `json:"segments"`
	Words    []Word    `json:"words"`
	// WordTimes is Measured or Estimated.
	WordTimes string `json:"word_times"`
	Engine    string `json:"engine"` // name and version
}

// Segment is a stretch of speech between two pauses.
type Segment struct {
	ID    int     `json:"id"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Text  string  `json:"text"`
}

// Word is one word with what stands at it, such as a comma.
type Word struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// Bounds of what an engine may have said of a minute of sound, so that a transcript is
// bounded by its sound. People say 300 words at most.
const (
	maxWords    = 1200 // a minute
	maxWordSize = 200  // bytes
)

// Add appends a transcript of sound that begins offset seconds after t's. Segments
// without text and times that make no sense are mended or left out, and so is what
// nobody could have said in the time, whatever engine said them. It takes time linear in
// part and in t's text.
func (t *Transcript) Add(part Transcript, offset float64) {
	room := 60 + int(maxWords*part.Duration/60)
	left := room * maxWordSize // bytes of text
	var all strings.Builder
	all.WriteString(t.Text)
	for _, s := range part.Segments[:min(len(part.Segments), room)] {
		text := oneLine(s.Text)
		if text == "" || len(text) > left {
			continue
		}
		left -= len(text)
		start, end := within(s.Start, s.End, part.Duration)
		t.Segments = append(t.Segments, Segment{len(t.Segments), round(start + offset), round(end + offset), text})
		if all.Len() > 0 {
			all.WriteByte(' ')
		}
		all.WriteString(text)
	}
	t.Text = all.String()
	last := 0.0
	for _, w := range part.Words[:min(len(part.Words), room)] {
		word := oneLine(w.Word)
		if word == "" || len(word) > maxWordSize {
			continue
		}
		start, end := within(w.Start, w.End, part.Duration)
		start = max(start, last)
		last, end = start, max(start, end)
		t.Words = append(t.Words, Word{word, round(start + offset), round(end + offset)})
	}
	t.Duration = round(max(t.Duration, offset+part.Duration))
	t.WordTimes, t.Engine = part.WordTimes, part.Engine
	if t.Language == "" {
		t.Language = part.Language
	}
}

// within returns a stretch inside of 0 to length.
func within(start, end, length float64) (from, to float64) {
	if !(start >= 0) {
		start = 0
	}
	start = min(start, length)
	if !(end >= start) {
		end = start
	}
	return start, min(end, length)
}

// oneLine is text without control characters, its white space single.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(clean), " ")
}

// round cuts a time to milliseconds.
func round(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }
