package rules

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// The bounds of what is read, in bytes: a query, and a form, which may carry a
// query encoded once more.
const (
	MaxQuery = 8 << 10
	MaxForm  = 32 << 10
)

// Form holds the parameters of a request. One with an empty value counts as
// absent (RFC 6749 section 3.1).
type Form struct {
	values   map[string]string
	repeated map[string]bool
}

// ParseForm reads a query or a form-encoded body. It fails with invalid_request
// when that is too long, not properly encoded or no text. Parameters that are given more
// than once are reported by Repeated, and by Get as absent.
//
// It takes time linear in raw, of MaxForm bytes at most, and memory of at most 64
// bytes for each of its bytes.
func ParseForm(raw string) (Form, *Error) {
	if len(raw) > MaxForm {
		return Form{}, refuse(InvalidRequest, "The request is too long.")
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return Form{}, refuse(InvalidRequest, "The parameters are not form-encoded.")
	}
	f := Form{map[string]string{}, map[string]bool{}}
	for name, list := range q {
		if !utf8.ValidString(name+list[0]) || strings.Contains(name+list[0], "\x00") {
			return Form{}, refuse(InvalidRequest, "The parameters are not text.")
		}
		switch {
		case len(list) > 1:
			f.repeated[name] = true
		case list[0] != "":
			f.values[name] = list[0]
		}
	}
	return f, nil
}

// Get returns the value of a parameter, "" when it is absent.
func (f Form) Get(name string) string { return f.values[name] }

// Repeated reports whether one of names is given more than once, or, without
// names, whether any parameter is.
func (f Form) Repeated(names ...string) bool {
	if len(names) == 0 {
		return len(f.repeated) > 0
	}
	for _, n := range names {
		if f.repeated[n] {
			return true
		}
	}
	return false
}

// Printable reports whether s holds only what RFC 6749 appendix A calls VSCHAR.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
