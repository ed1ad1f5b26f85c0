package apikey

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/limits/growth"
)

// What is wrong with a header that has no credential in it is said, and what to send.
func TestWhatIsWrongWithAHeader(t *testing.T) {
	t.Parallel()
	key := FormatKey(42, random(7))
	for header, want := range map[string]string{
		"Basic YTpi":           "has the scheme Basic, which is not read here",
		"basic":                "does not begin with Bearer and a blank",
		key:                    "does not begin with Bearer and a blank",
		"Token " + key:         "does not begin with Bearer and a blank",
		"Bearer:" + key:        "does not begin with Bearer and a blank",
		"Bearer":               "has nothing behind Bearer",
		"Bearer ":              "has nothing behind Bearer",
		"bearer   ":            "has a blank before the credential, in it or behind it",
		"Bearer  " + key:       "has a blank before the credential, in it or behind it",
		"Bearer Bearer " + key: "has a blank before the credential, in it or behind it",
		"Bearer " + key + ",x": "has a comma in it, as if it were several",
		"Bearer \u201c" + key:  "has characters in it that no credential has",
		"Bearer " + strings.Repeat("a", maxHeader): "is longer than any credential",
	} {
		if _, d := Bearer(header); d.Code != decision.InvalidKey || d.Detail.Field != Header || d.Detail.Issue != want || d.Detail.Expected == "" {
			t.Errorf("%.60q: %+v, want %q", header, d, want)
		}
	}
	for header, want := range map[string]string{
		"Bearer " + key: "begins with Bearer", " " + key: "has a blank before the credential, in it or behind it", key + "," + key: "has a comma in it, as if it were several",
		"\u00e9": "has characters in it that no credential has", strings.Repeat("a", maxHeader+1): "is longer than any credential",
	} {
		if _, d := Bare("x-api-key", header); d.Code != decision.InvalidKey || d.Detail.Field != "x-api-key" || d.Detail.Issue != want || d.Detail.Expected == "" {
			t.Errorf("%.60q: %+v, want %q", header, d, want)
		}
	}
}

// A text that is no key is told what it is, by its form alone.
func TestWhatIsWrongWithAKey(t *testing.T) {
	t.Parallel()
	key := FormatKey(42, random(7))
	for text, want := range map[string]string{
		key[:KeyLen-1]:            "is too short: its end is missing",
		"slk_":                    "is too short: its end is missing",
		key + "0":                 "is too long: something stands behind it",
		key[:20] + "!" + key[21:]: "is mistyped: its checksum does not fit",
		"eyJhbGciOiJ9.e30.c2ln":   "is a token, not an API key",
		"key_0wbh59dp654tw":       "is the id of a key, not the key itself",
		"sk_live_abcdef":          "is the key of a stream or of another service, not an API key of this one",
		"slr_abc":                 "is a refresh token of OAuth, not an API key",
		"$SLUICE_API_KEY":         "is the name of a variable, not its value",
		`"` + key + `"`:           "stands in quotation marks",
		"<API_KEY>":               "stands in angle brackets",
		"hello":                   "does not begin with slk_",
		"SLK" + key[3:]:           "does not begin with slk_",
		"":                        "does not begin with slk_",
	} {
		d := Malformed(text)
		if d.Code != decision.InvalidKey || d.Detail.Field != "key" || d.Detail.Issue != want {
			t.Errorf("%q: %+v, want %q", text, d, want)
		}
		if whole := fmt.Sprintf("the whole text of a key: %s and %d more characters", Prefix, KeyLen-len(Prefix)); d.Detail.Expected != whole {
			t.Errorf("%q expected, want %q", d.Detail.Expected, whole)
		}
	}
	if d := Malformed(key); d != decision.Deny(decision.InvalidKey) {
		t.Errorf("a key that has the form of one, whether there is one or not: %+v", d)
	}
	if got, want := tooLong("").Detail.Expected, fmt.Sprintf("at most %d bytes", maxHeader); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nothing that was sent comes back, and nothing is allocated for it.
func FuzzMalformed(f *testing.F) {
	f.Add(FormatKey(1, random(1)))
	f.Add("slk_0000000000001_")
	f.Add(`"`)
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 0, 1<<10, func() { Malformed(s) })
		d := Malformed(s)
		if d.Code != decision.InvalidKey || d.Detail.Issue == "" && !WellFormed(s) {
			t.Fatalf("%q: %+v", s, d)
		}
		if len(s) > 20 && strings.Contains(d.Detail.Issue+d.Detail.Expected, s) {
			t.Fatalf("%q is repeated: %+v", s, d)
		}
	})
}
