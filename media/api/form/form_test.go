package form_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/platform/apierror"
)

func TestWhatAFieldMayHold(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for _, c := range strings.Repeat("x", 51) {
		many[string(c+rune(len(many)))] = ""
	}
	cases := []struct {
		name  string
		ok    bool
		check func(*form.Form)
	}{
		{"a title", true, func(f *form.Form) { f.Text("t", "Évening show 🎥", 20) }},
		{"exactly as long as allowed", true, func(f *form.Form) { f.Text("t", "ééé", 3) }},
		{"no title", false, func(f *form.Form) { f.Text("t", "", 20) }},
		{"only spaces", false, func(f *form.Form) { f.Text("t", " \t ", 20) }},
		{"too long", false, func(f *form.Form) { f.Text("t", "éééé", 3) }},
		{"a control character", false, func(f *form.Form) { f.Text("t", "a\x00b", 20) }},
		{"bytes that are no text", false, func(f *form.Form) { f.Text("t", "a\xffb", 20) }},
		{"a known value", true, func(f *form.Form) { f.OneOf("p", "srt", []string{"rtmp", "srt"}) }},
		{"an unknown value", false, func(f *form.Form) { f.OneOf("p", "SRT", []string{"rtmp", "srt"}) }},
		{"in range", true, func(f *form.Form) { f.Range("n", 3, 1, 3) }},
		{"above range", false, func(f *form.Form) { f.Range("n", 4, 1, 3) }},
		{"below range", false, func(f *form.Form) { f.Range("n", 0, 1, 3) }},
		{"an address", true, func(f *form.Form) { f.URL("u", "https://example.com/a.mp4?x=1") }},
		{"a relative address", false, func(f *form.Form) { f.URL("u", "/a.mp4") }},
		{"another scheme", false, func(f *form.Form) { f.URL("u", "file:///etc/passwd") }},
		{"an address with a password", false, func(f *form.Form) { f.URL("u", "https://u:p@example.com/") }},
		{"an address too long", false, func(f *form.Form) { f.URL("u", "https://example.com/"+strings.Repeat("a", 2048)) }},
		{"labels", true, func(f *form.Form) { f.Metadata("m", map[string]string{"show": "42"}) }},
		{"no labels", true, func(f *form.Form) { f.Metadata("m", nil) }},
		{"too many labels", false, func(f *form.Form) { f.Metadata("m", many) }},
		{"a nameless label", false, func(f *form.Form) { f.Metadata("m", map[string]string{"": "x"}) }},
		{"a label too long", false, func(f *form.Form) { f.Metadata("m", map[string]string{"a": strings.Repeat("x", 501)}) }},
		{"a label that cannot be stored", false, func(f *form.Form) { f.Metadata("m", map[string]string{"a": "\x00"}) }},
	}
	for _, c := range cases {
		var f form.Form
		c.check(&f)
		if (f.Err() == nil) != c.ok {
			t.Errorf("%s: %v", c.name, f.Err())
		}
	}
}

func TestFailuresShareACodeOrAreInvalidRequest(t *testing.T) {
	t.Parallel()
	var one, both form.Form
	one.FailAs(decision.Stream002, "settings.bitrate", "is above the plan", "")
	if apierror.Code(one.Err()) != decision.Stream002 {
		t.Error(one.Err())
	}
	both.FailAs(decision.Stream002, "settings.bitrate", "is above the plan", "")
	both.Fail("title", "is missing", "string")
	both.FailAs(decision.Stream002, "other", "too", "")
	e, _ := errors.AsType[*apierror.Error](both.Err())
	if e.Code != decision.InvalidRequest || len(e.Details) != 3 {
		t.Error(both.Err())
	}
}
