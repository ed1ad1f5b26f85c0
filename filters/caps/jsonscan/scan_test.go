package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/platform/limits/growth"
)

// seeds are the shapes that the parsing literature calls hard, right and wrong.
var seeds = []string{
	`{}`, `[]`, ` [ ] `, `""`, `0`, `-0`, `1.5e+3`, `true`, `false`, `null`, "\t{\"a\" : [1 , {}]}\r\n",
	`{"a":"b","a":"c"}`, `{"":0}`, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"é😀"`,
	`[[[[[]]]]]`, `{"a":{"b":[{"c":null}]}}`, `1E400`, `123456789012345678901234567890`, "\"\u007f\u2028\"",
	``, ` `, `{`, `[`, `}`, `]`, `{]`, `[}`, `[1,]`, `{"a":1,}`, `{,}`, `[,1]`, `{"a"}`, `{"a":}`, `{a:1}`, `{'a':1}`,
	`{"a":1 "b":2}`, `[1 2]`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `0x1`, `NaN`, `Infinity`, `tru`, `nul`, `truex`,
	`"`, `"\`, `"\u`, `"\u12`, `"\x"`, `"\u00g0"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xc3\"", "\xef\xbb\xbf{}", `{} {}`, `{}x`,
	`/**/{}`, "[\"a\x00\"]", `["\uD800\uD800"]`, "\"\xed\xa0\x80\"", "\"\xc0\xaf\"", `[1,2`, `{"a":[1,{"b":2]}}`,
}

func valid(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

func TestValidateAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, s := range seeds {
		if got, want := Validate([]byte(s), MaxDepth) == nil, valid([]byte(s)); got != want {
			t.Errorf("Validate(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestValidateNamesTheFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, issue string
		offset      int
	}{
		{`{"a":1,}`, IssueByte, 7},
		{`{"a":`, IssueEnd, 5},
		{`[1] 2`, IssueTrailing, 4},
		{`["\q"]`, IssueEscape, 2},
		{"[\"a\tb\"]", IssueControl, 3},
		{"[\"\xff\"]", IssueUTF8, 2},
		{`[[[[0]]]]`, IssueDepth, 3},
	} {
		err := Validate([]byte(c.text), 3)
		if err == nil || err.Issue != c.issue || err.Offset != c.offset {
			t.Errorf("Validate(%q) = %+v, want %s at %d", c.text, err, c.issue, c.offset)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := Validate(deep(64), 64); err != nil {
		t.Errorf("64 levels of 64: %v", err)
	}
	if err := Validate(deep(65), 64); err == nil {
		t.Error("65 levels of 64 were accepted")
	}
	if err := Validate(deep(MaxDepth+1), 1<<20); err == nil {
		t.Error("MaxDepth was exceeded")
	}
	if err := Validate([]byte(strings.Repeat(`{"a":`, 1<<20)), MaxDepth); err == nil || err.Issue != IssueDepth {
		t.Errorf("a million open objects: %v", err)
	}
}

func FuzzValidate(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 0, 256, func() { everything(b) })
		err := Validate(b, MaxDepth)
		if err != nil && err.Issue == IssueDepth {
			return
		}
		if (err == nil) != valid(b) {
			t.Fatalf("Validate(%q) = %v", b, err)
		}
		if err == nil {
			checkWalk(t, b, Root(b))
		}
	})
}

// checkWalk compares a walk of v with what the standard library decodes.
func checkWalk(t *testing.T, b []byte, v Value) {
	t.Helper()
	switch text := b[v.From:v.To]; v.Kind(b) {
	case Object:
		checkObject(t, b, v)
	case Array:
		var want []json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for w := Members(b, v); w.Step(); n++ {
			if string(b[w.From:w.To]) != string(want[n]) {
				t.Fatalf("element %d of %q is %q", n, text, b[w.From:w.To])
			}
			checkWalk(t, b, w.Value)
		}
		if n != len(want) {
			t.Fatalf("%d elements in %q, want %d", n, text, len(want))
		}
	case String:
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if got := string(Append(nil, v.Text(b))); got != want {
			t.Fatalf("%q decodes to %q, want %q", text, got, want)
		}
	}
}

func checkObject(t *testing.T, b []byte, v Value) {
	t.Helper()
	var want map[string]json.RawMessage
	if err := json.Unmarshal(b[v.From:v.To], &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for w := Members(b, v); w.Step(); {
		got[string(Append(nil, w.Name))] = string(b[w.From:w.To])
		checkWalk(t, b, w.Value)
	}
	if len(got) != len(want) {
		t.Fatalf("%d members in %q, want %d", len(got), b[v.From:v.To], len(want))
	}
	for k, raw := range want {
		if got[k] != string(raw) {
			t.Fatalf("member %q is %q, want %q", k, got[k], raw)
		}
	}
}
