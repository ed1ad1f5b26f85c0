package search

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word of a text, as terms are compared: in lower case, without the s of a plural.
type word struct {
	term     string
	from, to int  // bytes of the text
	part     bool // of a word that came before: limit, of rate_limit and rateLimit
}

// maxWord is how many bytes of a word count.
const maxWord = 60

// words are the words of a text, in order, in time linear in it. Letters, digits and _ make a
// word; one that is made of several by _ or by capitals is followed by these.
func words(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		from := -1
		for i, c := range text {
			if unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' {
				if from < 0 {
					from = i
				}
				continue
			}
			if from >= 0 && !whole(text, from, i, yield) {
				return
			}
			from = -1
		}
		if from >= 0 {
			whole(text, from, len(text), yield)
		}
	}
}

// whole yields the word between two places, and its parts.
func whole(text string, from, to int, yield func(word) bool) bool {
	s := text[from:to]
	trimmed := strings.Trim(s, "_")
	if trimmed == "" {
		return true
	}
	if !yield(word{term: term(trimmed), from: from, to: to}) {
		return false
	}
	at, last := -1, rune(0)
	for i, c := range s {
		next := c == '_' || unicode.IsUpper(c) && unicode.IsLower(last)
		if next && at >= 0 {
			if !yield(word{term(s[at:i]), from + at, from + i, true}) {
				return false
			}
			at = -1
		}
		if c != '_' && at < 0 {
			at = i
		}
		last = c
	}
	return at <= 0 || yield(word{term(s[at:]), from + at, to, true})
}

// term is a word as it is compared.
func term(s string) string {
	s = strings.ToLower(s)
	if len(s) > maxWord {
		at := maxWord
		for at > 0 && !utf8.RuneStart(s[at]) {
			at--
		}
		s = s[:at]
	}
	if len(s) > 3 && s[len(s)-1] == 's' && s[len(s)-2] != 's' {
		s = s[:len(s)-1]
	}
	return s
}
