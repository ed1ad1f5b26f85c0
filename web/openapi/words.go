package openapi

import (
	"strings"
	"unicode"
)

// pascal is a property's name as a part of a type's.
func pascal(s string) string {
	var b strings.Builder
	up := true
	for _, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			up = true
			continue
		}
		if up {
			c, up = unicode.ToUpper(c), false
		}
		b.WriteRune(c)
	}
	return b.String()
}

// singular names one of what name names.
func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "sses"):
		return strings.TrimSuffix(name, "es")
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "ss"), !strings.HasSuffix(name, "s"):
		return name + "Item"
	default:
		return strings.TrimSuffix(name, "s")
	}
}
