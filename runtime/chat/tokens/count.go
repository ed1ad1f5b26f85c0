// Package tokens counts the tokens of texts where the provider does not say,
// with the o200k vocabulary. A count is an estimate for any other model.
package tokens

import (
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

const (
	// window bounds what is tokenized at once: the time grows with the square
	// of the longest word.
	window = 512
	// sample bounds what is tokenized of one text; the rest is taken to be
	// alike.
	sample = 256 << 10
)

// codec loads the vocabulary at first use: 6 MB and 16 ms.
var codec = sync.OnceValue(func() tokenizer.Codec {
	c, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		panic("tokens: the vocabulary is part of the binary: " + err.Error())
	}
	return c
})

// Count returns how many tokens text has.
func Count(text string) int {
	if len(text) > sample {
		return int(int64(Count(text[:cut(text, sample)])) * int64(len(text)) / sample)
	}
	n := 0
	each(text, func(words []string) bool {
		n += len(words)
		return true
	})
	return n
}

// Split returns the first n tokens of text, each as the text it stands for. A
// character that spans tokens goes with the last of them, so every piece is
// valid UTF-8 and some may be empty.
func Split(text string, n int) []string {
	var pieces []string
	each(text, func(words []string) bool {
		open := ""
		for _, w := range words {
			if len(pieces) == n {
				return false
			}
			open += w
			if piece := open; utf8.ValidString(piece) {
				pieces, open = append(pieces, piece), ""
			} else {
				pieces = append(pieces, "")
			}
		}
		return true
	})
	return pieces
}

// Prefix returns the length in bytes of what text's first n tokens stand for,
// whole characters only.
func Prefix(text string, n int) int {
	size := 0
	for _, p := range Split(text, n) {
		size += len(p)
	}
	return size
}

// each hands on the tokens of text, one window after the other.
func each(text string, f func(words []string) bool) {
	for len(text) > 0 {
		end := cut(text, window)
		_, words, err := codec().Encode(text[:end])
		if err != nil || len(words) == 0 { // no text that is valid UTF-8 comes here
			words = make([]string, 0, end)
			for _, r := range text[:end] {
				words = append(words, string(r))
			}
		}
		if !f(words) {
			return
		}
		text = text[end:]
	}
}

// cut returns where to end a window of at most n bytes: before a space if there
// is one in its second half, else between characters.
func cut(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	for i := n; i > n/2; i-- {
		if text[i] == ' ' {
			return i
		}
	}
	for n > 1 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
