package transcript

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Cue is what is shown at one time.
type Cue struct {
	Start, End float64
	Lines      []string // one or two
}

// What viewers can read: two lines of 42 letters, from one to six seconds.
const (
	lineLetters = 42
	cueLongest  = 6.0
	cueShortest = 1.0
	cuePause    = 0.7 // between words: a new cue begins
)

// Cues divides t into what fits on a screen. A cue ends where a sentence or a breath
// does, where it can. It takes time linear in t.
func (t Transcript) Cues() (cues []Cue) {
	begin := 0
	for i := range t.Words {
		if i+1 < len(t.Words) && !t.ends(begin, i) {
			continue
		}
		first, last := t.Words[begin], t.Words[i]
		cues = append(cues, Cue{first.Start, last.End, lines(t.Words[begin : i+1])})
		begin = i + 1
	}
	for i := range cues { // long enough to be read, where there is time
		until := t.Duration
		if i+1 < len(cues) {
			until = cues[i+1].Start
		}
		c := &cues[i]
		c.End = min(max(c.End, c.Start+cueShortest), max(until, c.End))
		if c.End <= c.Start {
			c.End = c.Start + 0.001
		}
	}
	return cues
}

// ends reports whether a cue of the words begin to i ends there; there is another word.
func (t Transcript) ends(begin, i int) bool {
	first, last, next := t.Words[begin], t.Words[i], t.Words[i+1]
	sentence := strings.HasSuffix(last.Word, ".") || strings.HasSuffix(last.Word, "?") || strings.HasSuffix(last.Word, "!")
	return !fit(t.Words[begin:i+2]) || next.End-first.Start > cueLongest || next.Start-last.End >= cuePause ||
		sentence && last.End-first.Start >= cueShortest
}

// fit reports whether words fit in two lines; one that is longer than a line counts for
// as many as it has letters for.
func fit(words []Word) bool {
	filled, letters := 0, 0
	for _, w := range words {
		n := utf8.RuneCountInString(w.Word)
		if letters > 0 && letters+1+n <= lineLetters {
			letters += 1 + n
			continue
		}
		filled, letters = filled+1+(n-1)/lineLetters, n
	}
	return filled <= 2
}

// lines breaks words into one line, or two of about the same length.
func lines(words []Word) []string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = w.Word
	}
	whole := strings.Join(text, " ")
	if utf8.RuneCountInString(whole) <= lineLetters || len(text) == 1 {
		return []string{whole}
	}
	best, at, first := -1, 1, 0
	for i := 1; i < len(text); i++ {
		first += utf8.RuneCountInString(text[i-1]) + 1
		if longer := max(first, utf8.RuneCountInString(whole)-first); best < 0 || longer < best {
			best, at = longer, i
		}
	}
	return []string{strings.Join(text[:at], " "), strings.Join(text[at:], " ")}
}

// VTT is t as WebVTT (W3C).
func (t Transcript) VTT() string {
	text, _ := t.VTTWithin(math.MaxInt)
	return text
}

// VTTWithin is t as WebVTT: as many of its first cues as most bytes have room for.
func (t Transcript) VTTWithin(most int) (text string, cues int) {
	var b strings.Builder
	b.WriteString("WEBVTT\n")
	for _, c := range t.Cues() {
		end := b.Len()
		if c.WriteVTT(&b); b.Len() > most {
			return b.String()[:end], cues
		}
		cues++
	}
	return b.String(), cues
}

// escape makes text of what WebVTT takes for markup.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// WriteVTT adds c to a file of WebVTT, behind an empty line.
func (c Cue) WriteVTT(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s --> %s\n%s\n", clock(c.Start, "."), clock(c.End, "."), escape.Replace(strings.Join(c.Lines, "\n")))
}

// SRT is t as SubRip.
func (t Transcript) SRT() string {
	var b strings.Builder
	for i, c := range t.Cues() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%d\n%s --> %s\n%s\n", i+1, clock(c.Start, ","), clock(c.End, ","), strings.ReplaceAll(strings.Join(c.Lines, "\n"), "-->", "->"))
	}
	return b.String()
}

// Plain is the text of t, a line for each segment.
func (t Transcript) Plain() string {
	var b strings.Builder
	for _, s := range t.Segments {
		b.WriteString(s.Text + "\n")
	}
	return b.String()
}

// clock is a time as HH:MM:SS and milliseconds behind point.
func clock(seconds float64, point string) string {
	ms := int64(seconds*1000 + 0.5)
	return fmt.Sprintf("%02d:%02d:%02d%s%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, point, ms%1000)
}
