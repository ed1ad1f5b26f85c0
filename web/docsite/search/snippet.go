package search

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Piece is a piece of a text. Those that are marked are what was looked for.
type Piece struct {
	Text   string `json:"text"`
	Marked bool   `json:"marked,omitempty"`
}

// Lengths of snippets, and of the text in which they are looked for, in bytes.
const (
	shown  = 180
	before = 50 // of what was looked for
	looked = 64 << 10
)

// snippet is the part of a text in which most of the words stand closest together, in time
// linear in looked.
func snippet(text string, asked []string) []Piece {
	if len(text) > looked {
		text = text[:looked]
	}
	type hit struct{ from, to, word int }
	var hits []hit
	for w := range words(text) {
		if i := slices.IndexFunc(asked, func(a string) bool { return w.term == a || len(a) > 1 && strings.HasPrefix(w.term, a) }); i >= 0 {
			hits = append(hits, hit{w.from, w.to, i})
		}
	}
	// The window of shown bytes with the most different words: both of its ends only move on.
	begin, most := 0, 0
	counts, different, last := [maxWords]int{}, 0, 0
	for first := range hits {
		for ; last < len(hits) && hits[last].to-hits[first].from <= shown-before; last++ {
			if counts[hits[last].word]++; counts[hits[last].word] == 1 {
				different++
			}
		}
		if different > most {
			begin, most = hits[first].from, different
		}
		if last > first {
			if counts[hits[first].word]--; counts[hits[first].word] == 0 {
				different--
			}
		} else {
			last = first + 1 // longer than a snippet
		}
	}
	from := edge(text, max(0, begin-before))
	to := edge(text, min(len(text), from+shown))
	var pieces []Piece
	add := func(s string, marked bool) {
		if s != "" {
			pieces = append(pieces, Piece{s, marked})
		}
	}
	at := from
	if from > 0 {
		add("… ", false)
	}
	for _, h := range hits {
		if h.from >= at && h.to <= to {
			add(text[at:h.from], false)
			add(text[h.from:h.to], true)
			at = h.to
		}
	}
	add(text[at:max(at, to)], false)
	if to < len(text) {
		add(" …", false)
	}
	return pieces
}

// edge is the next place where a word begins or ends, at most 20 bytes on; else that
// of a letter.
func edge(text string, at int) int {
	for i := at; i < min(len(text), at+20); i++ {
		if i == 0 || text[i-1] == ' ' {
			return i
		}
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
