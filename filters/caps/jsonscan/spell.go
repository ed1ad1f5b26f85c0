package jsonscan

import (
	"strings"
	"unicode/utf8"
)

// Spells reports whether raw, the inside of a string, is text. Unlike Equal it
// takes text in any script.
func Spells(raw []byte, text string) bool {
	at := 0
	for i := 0; i < len(raw); {
		if c := raw[i]; c != '\\' {
			if at >= len(text) || c != text[at] {
				return false
			}
			i, at = i+1, at+1
			continue
		}
		var buffer [utf8.UTFMax]byte
		r, next := Rune(raw, i)
		n := utf8.EncodeRune(buffer[:], r)
		if r >= 0xd800 && r < 0xe000 || !strings.HasPrefix(text[at:], string(buffer[:n])) {
			return false
		}
		i, at = next, at+n
	}
	return at == len(text)
}

// Escape reports whether an escape stands at b[i], which is a backslash.
func Escape(b []byte, i int) bool {
	if i+1 >= len(b) {
		return false
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		return i+6 <= len(b) && hex4(b[i+2:]) >= 0
	}
	return false
}
