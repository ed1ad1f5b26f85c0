// Package form checks the fields of a request and gathers everything that is
// wrong with them, so that a caller learns of all bad fields at once.
package form

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of metadata, as the public APIs have them.
const (
	maxMetadataKeys = 50
	maxMetadataKey  = 40
	maxMetadataText = 500
	maxURL          = 2048
)

// Form gathers failures; the zero value is ready.
type Form struct {
	details []decision.Detail
	code    decision.Code // of all failures, or invalid_request when they differ
}

// Fail records that field has an issue.
func (f *Form) Fail(field, issue, expected string) {
	f.FailAs(decision.InvalidRequest, field, issue, expected)
}

// FailAs is Fail for a condition that has a code of its own.
func (f *Form) FailAs(code decision.Code, field, issue, expected string) {
	if len(f.details) > 0 && f.code != code {
		code = decision.InvalidRequest
	}
	f.code = code
	f.details = append(f.details, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

// Add records failures that were found elsewhere.
func (f *Form) Add(list []decision.Detail) {
	for _, d := range list {
		f.Fail(d.Field, d.Issue, d.Expected)
	}
}

// Err returns nil, or an error with every failure: of the failures' code where
// they share one, else of invalid_request.
func (f *Form) Err() error {
	if len(f.details) == 0 {
		return nil
	}
	return &apierror.Error{Code: f.code, Details: f.details}
}

// Text checks a string that people read: 1 to max characters, valid UTF-8,
// no control characters, not only spaces.
func (f *Form) Text(field, s string, max int) {
	expected := "string of 1 to " + strconv.Itoa(max) + " characters"
	switch {
	case strings.TrimSpace(s) == "":
		f.Fail(field, "is missing or empty", expected)
	case utf8.RuneCountInString(s) > max:
		f.Fail(field, "is too long", expected)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		f.Fail(field, "has control characters", expected)
	}
}

// OneOf checks that s is one of allowed.
func (f *Form) OneOf(field, s string, allowed []string) {
	if !slices.Contains(allowed, s) {
		f.Fail(field, "is not an accepted value", "one of "+strings.Join(allowed, ", "))
	}
}

// Range checks that n is from lo to hi, both included.
func (f *Form) Range(field string, n, lo, hi int) {
	if n < lo || n > hi {
		f.Fail(field, "is out of range", "integer from "+strconv.Itoa(lo)+" to "+strconv.Itoa(hi))
	}
}

// Number reads an integer of the query, def if it is not given; what is no integer is
// out of range.
func (f *Form) Number(q url.Values, name string, def, lo, hi int) int {
	text := q.Get(name)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		n = lo - 1
	}
	f.Range(name, n, lo, hi)
	return n
}

// URL checks an absolute http or https URL without credentials in it. Whether
// its host may be called is for the client that calls it.
func (f *Form) URL(field, s string) {
	u, err := url.Parse(s)
	ok := err == nil && len(s) <= maxURL && u.Host != "" && u.User == nil && u.Fragment == "" &&
		(u.Scheme == "https" || u.Scheme == "http")
	if !ok {
		f.Fail(field, "is not an absolute URL", "https URL without credentials or fragment, at most "+strconv.Itoa(maxURL)+" characters")
	}
}

// Metadata checks the caller's own labels.
func (f *Form) Metadata(field string, m map[string]string) {
	if len(m) > maxMetadataKeys {
		f.Fail(field, "has too many keys", "at most "+strconv.Itoa(maxMetadataKeys)+" keys")
		return
	}
	for k, v := range m {
		if k == "" || len(k) > maxMetadataKey || len(v) > maxMetadataText || !clean(k) || !clean(v) {
			f.Fail(field, "has a key or value that is empty, too long or not text",
				"keys of 1 to "+strconv.Itoa(maxMetadataKey)+" and values of at most "+strconv.Itoa(maxMetadataText)+" bytes")
			return
		}
	}
}

// clean reports whether Postgres can store s: valid UTF-8 without NUL.
func clean(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
