package jsonscan

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Rune decodes the character at raw[i], where raw is a string's inside as Text
// returns it, and returns the index behind it. A surrogate pair in escapes is
// one character; a surrogate that stands alone is one too, and is returned as
// it is.
func Rune(raw []byte, i int) (r rune, next int) {
	if raw[i] != '\\' {
		r, n := utf8.DecodeRune(raw[i:])
		return r, i + n
	}
	if raw[i+1] != 'u' {
		return unescape(raw[i+1]), i + 2
	}
	r = hex4(raw[i+2:])
	if next = i + 6; r >= 0xd800 && r < 0xdc00 && next+6 <= len(raw) && raw[next] == '\\' && raw[next+1] == 'u' {
		if both := utf16.DecodeRune(r, hex4(raw[next+2:])); both != utf8.RuneError {
			return both, next + 6
		}
	}
	return r, next
}

// Cut returns the index in raw behind its first n characters, which is
// len(raw) if it has no more than that.
func Cut(raw []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(raw); n-- {
		_, i = Rune(raw, i)
	}
	return i
}

// Equal reports whether raw spells name.
func Equal(raw []byte, name string) bool {
	i := match(raw, 0, name, same)
	return i == len(raw)
}

// Fold reports whether raw spells name when case is ignored, as some parsers
// do when they match the names of members. name must be in lower case.
func Fold(raw []byte, name string) bool {
	return match(raw, 0, name, lower) == len(raw)
}

// Find returns the place of the first text in raw, at or behind from, that
// spells word when case is ignored; ok is false if there is none. word must be
// in lower case ASCII.
func Find(raw []byte, from int, word string) (at, end int, ok bool) {
	for i := candidate(raw, from, word[0]); i < len(raw); i = candidate(raw, i, word[0]) {
		if end := match(raw, i, word, lower); end >= 0 {
			return i, end, true
		}
		_, i = Rune(raw, i)
	}
	return 0, 0, false
}

// candidate returns the index of the first character at or behind i that may
// fold to c: as it is, in upper case, in an escape or beyond ASCII.
func candidate(raw []byte, i int, c byte) int {
	for i < len(raw) && raw[i]|0x20 != c && raw[i] != c && raw[i] != '\\' && raw[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// Append decodes raw and appends it to dst as UTF-8, which is no longer than
// raw. A surrogate that stands alone becomes U+FFFD.
func Append(dst, raw []byte) []byte {
	dst = slices.Grow(dst, len(raw))
	for i := 0; i < len(raw); {
		var r rune
		r, i = Rune(raw, i)
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// match returns the index behind word if raw spells it from i on, else -1.
func match(raw []byte, i int, word string, fold func(rune) rune) int {
	for j := range len(word) {
		if i >= len(raw) {
			return -1
		}
		r, next := Rune(raw, i)
		if fold(r) != rune(word[j]) {
			return -1
		}
		i = next
	}
	return i
}

// same folds nothing.
func same(r rune) rune { return r }

// lower folds to lower case the characters that fold to ASCII letters: the
// letters themselves, the long s and the Kelvin sign.
func lower(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\u017f':
		return 's'
	case r == '\u212a':
		return 'k'
	}
	return r
}

// unescape is the character of an escape of two bytes, whose second is c.
func unescape(c byte) rune {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(c)
}

// hex4 returns the number that b's first four bytes write, -1 if they are not
// hexadecimal digits.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
