package httpcache

import (
	"strconv"
	"strings"
)

// control is what Cache-Control says (RFC 9111, 5.2).
type control struct {
	noStore, noCache, private, public, mustRevalidate, onlyIfCached bool
	hasMaxAge, hasShared                                            bool
	maxAge, sharedMaxAge                                            uint32
}

// parseControl reads the values of Cache-Control, joined by commas. What makes no sense
// counts as the most careful there is: an age that is no number as 0, and no-cache or
// private of some fields as of all.
//
// It takes time linear in the text.
func parseControl(text string) (c control) {
	for len(text) > 0 {
		var directive string
		directive, text = cutDirective(text)
		name, value, _ := strings.Cut(directive, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store":
			c.noStore = true
		case "no-cache":
			c.noCache = true
		case "private":
			c.private = true
		case "public":
			c.public = true
		case "must-revalidate":
			c.mustRevalidate = true
		case "only-if-cached":
			c.onlyIfCached = true
		case "max-age":
			c.maxAge, c.hasMaxAge = least(c.maxAge, c.hasMaxAge, seconds(value)), true
		case "s-maxage":
			c.sharedMaxAge, c.hasShared = least(c.sharedMaxAge, c.hasShared, seconds(value)), true
		}
	}
	return c
}

// cutDirective takes the first directive off a text: up to a comma that is in no quotes.
func cutDirective(text string) (directive, rest string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// least is the smaller of two ages, where there are two.
func least(was uint32, had bool, is uint32) uint32 {
	if had {
		return min(was, is)
	}
	return is
}

// seconds reads an age; 0 when it is none.
func seconds(text string) uint32 {
	n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(text), `"`), 10, 31)
	if err != nil {
		return 0
	}
	return uint32(n)
}
