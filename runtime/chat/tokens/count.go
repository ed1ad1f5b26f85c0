// Package tokens counts the tokens of texts where the provider does not say,
// with the o200k vocabulary. A count is an estimate for any other model.
package tokens

import (
	"hash/maphash"
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
	sample = 64 << 10
)

// seed chooses the windows of a sample, so that nobody knows which parts of a
// text are looked at.
var seed = maphash.MakeSeed()

// codec loads the vocabulary at first use: 6 MB and 16 ms.
var codec = sync.OnceValue(func() tokenizer.Codec {
	c, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		panic("tokens: the vocabulary is part of the binary: " + err.Error())
	}
	return c
})

// Count returns how many tokens text has. It tokenizes at most sample bytes,
// whatever the length: of a longer text, windows spread over all of it.
func Count(text string) int {
	if len(text) > sample {
		return estimate(text)
	}
	n := 0
	for len(text) > 0 {
		end := cut(text, window)
		n, text = n+len(encode(text[:end])), text[end:]
	}
	return n
}

// estimate counts one window in each of sample/window equal parts of text.
func estimate(text string) int {
	n, looked := 0, 0
	part := len(text) / (sample / window)
	for i := range sample / window {
		from := i * part
		if spare := part - window; spare > 0 {
			from += int(maphash.Comparable(seed, [2]int{len(text), i}) % uint64(spare+1))
		}
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		piece := text[from : from+cut(text[from:], window)]
		n, looked = n+Count(piece), looked+len(piece)
	}
	return int(int64(n) * int64(len(text)) / int64(looked))
}

// Cursor goes through a text, token by token. It holds one window of it at a
// time, so whoever leaves early has paid for no more.
type Cursor struct {
	rest  string
	words []string
	open  string // the beginning of a character
}

// NewCursor returns a cursor at the beginning of text.
func NewCursor(text string) *Cursor { return &Cursor{rest: text} }

// Next returns the next token as the text it stands for; ok is false at the end.
// A character that spans tokens goes with the last of them, so every piece is
// valid UTF-8 and some may be empty.
func (c *Cursor) Next() (piece string, ok bool) {
	if len(c.words) == 0 {
		if c.rest == "" {
			return "", false
		}
		end := cut(c.rest, window)
		c.words, c.rest, c.open = encode(c.rest[:end]), c.rest[end:], ""
	}
	c.open += c.words[0]
	c.words = c.words[1:]
	if !utf8.ValidString(c.open) {
		return "", true
	}
	piece, c.open = c.open, ""
	return piece, true
}

// Split returns the first n tokens of text, as a Cursor does.
func Split(text string, n int) []string {
	var pieces []string
	for c := NewCursor(text); len(pieces) < n; {
		p, ok := c.Next()
		if !ok {
			break
		}
		pieces = append(pieces, p)
	}
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

// encode returns the tokens of one window.
func encode(text string) []string {
	_, words, err := codec().Encode(text)
	if err != nil || len(words) == 0 { // no text that is valid UTF-8 comes here
		words = make([]string, 0, len(text))
		for _, r := range text {
			words = append(words, string(r))
		}
	}
	return words
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
