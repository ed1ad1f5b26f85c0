package chapters

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/files/ffmpeg"
)

// Bounds of a search.
const (
	mostFound = 100   // chapters
	mostCues  = 20000 // captions that are read
	maxFound  = 60    // characters of a title that is taken from captions
)

// place is where a chapter may begin, and how much speaks for it. At least enough must.
type place struct{ at, weight float64 }

const enough = 2

// divide says where the chapters of a film of some length begin, in seconds: at 0, and where
// the picture changes, black ends or silence does, and better where several of them meet
// and nobody speaks. Of what lies closer than least, the place with more weight is taken.
// It takes n log n steps for n signals and cues.
func divide(length float64, seen ffmpeg.Signals, cues []captions.Cue, least float64) []float64 {
	starts := []float64{0}
	for _, p := range places(seen, cues) {
		if p.weight < enough || len(starts) >= mostFound {
			break
		}
		at := math.Round(p.at*1000) / 1000
		i, _ := slices.BinarySearch(starts, at)
		next := length
		if i < len(starts) {
			next = starts[i]
		}
		if i > 0 && at-starts[i-1] >= least && next-at >= least {
			starts = slices.Insert(starts, i, at)
		}
	}
	return starts
}

// places are those where chapters may begin, the best first.
func places(seen ffmpeg.Signals, cues []captions.Cue) []place {
	var list []place
	for _, s := range seen.Scenes {
		list = append(list, place{s.At, 1 + min(s.Score/20, 1)})
	}
	for _, b := range seen.Black {
		list = append(list, place{b.To, 3})
	}
	for _, s := range seen.Silence {
		list = append(list, place{s.To, 1 + min((s.To-s.From)/2, 1)})
	}
	for i, p := range list {
		if within(seen.Silence, p.at) {
			list[i].weight += 2
		}
		list[i].weight += spoken(cues, p.at)
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.at, b.at)) })
	return list
}

// within reports whether a time lies inside one of some spans, which are in order, and not
// only at the end of it, or half a second beside it.
func within(list []ffmpeg.Span, at float64) bool {
	i, _ := slices.BinarySearchFunc(list, at, func(s ffmpeg.Span, at float64) int { return cmp.Compare(s.To+0.5, at) })
	return i < len(list) && at >= list[i].From-0.5 && at != list[i].To
}

// spoken is what captions say of a time: it is worse in the middle of one, and better in a
// pause of two seconds.
func spoken(cues []captions.Cue, at float64) float64 {
	if len(cues) == 0 {
		return 0
	}
	t := time.Duration(at * float64(time.Second))
	i, _ := slices.BinarySearchFunc(cues, t, func(c captions.Cue, t time.Duration) int { return cmp.Compare(c.Start, t) })
	const slack = 300 * time.Millisecond
	before := time.Duration(0)
	if i > 0 {
		before = cues[i-1].End
	}
	switch {
	case before > t+slack:
		return -1
	case i < len(cues) && cues[i].Start-before >= 2*time.Second:
		return 1
	}
	return 0
}

// title names the chapter from one time to another, in seconds, by what is said at its
// beginning, or up to half a second before; n is its number among all, for where nothing
// is said.
func title(cues []captions.Cue, from, to float64, n int) string {
	t := time.Duration((from - 0.5) * float64(time.Second))
	i, _ := slices.BinarySearchFunc(cues, t, func(c captions.Cue, t time.Duration) int { return cmp.Compare(c.Start, t) })
	said := ""
	for ; i < len(cues) && cues[i].Start.Seconds() < to-0.5 && len(said) < maxFound; i++ {
		said = strings.TrimSpace(said + " " + cues[i].Text)
		if end := sentence(said); end > 0 {
			said = said[:end]
			break
		}
	}
	if said = shorten(said); said == "" {
		return fmt.Sprintf("Chapter %d", n)
	}
	return said
}

// sentence is where the first sentence of a text ends, without its full stop; 0: nowhere.
func sentence(text string) int {
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		if i > 2 && strings.ContainsRune(".?!。", r) && (next == len(text) || text[next] == ' ') {
			if r == '.' {
				return i
			}
			return next
		}
	}
	return 0
}

// shorten cuts a text between words, and leaves what people can read of it.
func shorten(text string) string {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text))
	out := ""
	for i, w := range words {
		if more := strings.TrimSpace(out + " " + w); utf8.RuneCountInString(more) <= maxFound {
			out = more
			continue
		}
		if i == 0 { // a language without spaces
			return string([]rune(w)[:maxFound-1]) + "…"
		}
		return out + "…"
	}
	return out
}
