package jsonscan

import (
	"bytes"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// long is so long that nothing which takes time by its square comes to an end
// before the test runs out of time: that takes hours.
const long = 4 << 20

// shapes are texts of about n bytes in which a careless walk goes over the same
// bytes again and again.
var shapes = map[string]func(n int) string{
	"blanks behind":         func(n int) string { return `{"a":1}` + strings.Repeat(" ", n) },
	"blanks before":         func(n int) string { return strings.Repeat("\n", n) + `{"a":1}` },
	"blanks in an object":   func(n int) string { return `{` + strings.Repeat("\t", n) + `}` },
	"blanks around a colon": func(n int) string { return `{"a"` + strings.Repeat(" ", n/2) + `:` + strings.Repeat("\r", n/2) + `1}` },
	"blanks around a comma": func(n int) string { return `[1` + strings.Repeat(" ", n/2) + `,` + strings.Repeat("\r", n/2) + `1]` },
	"blanks everywhere":     func(n int) string { return `[ ` + strings.Repeat(`1 , `, n/4) + `1 ] ` },
	"nothing but blanks":    func(n int) string { return strings.Repeat(" ", n) },
	"depth":                 func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"depth, side by side": func(n int) string {
		return "[" + strings.Repeat(strings.Repeat("[", 500)+strings.Repeat("]", 500)+",", n/1001) + "0]"
	},
	"a name repeated":     func(n int) string { return `{` + strings.Repeat(`"a":1,`, n/6) + `"a":1}` },
	"a long name":         func(n int) string { return `{"` + strings.Repeat("a", n) + `":1}` },
	"empty members":       func(n int) string { return `{` + strings.Repeat(`"":"",`, n/6) + `"":""}` },
	"commas":              func(n int) string { return `[0` + strings.Repeat(`,`, n) + `]` },
	"elements":            func(n int) string { return `[0` + strings.Repeat(`,0`, n/2) + `]` },
	"escapes":             func(n int) string { return `"` + strings.Repeat(`\n`, n/2) + `"` },
	"backslashes":         func(n int) string { return `"` + strings.Repeat(`\\`, n/2) + `"` },
	"quotes in escapes":   func(n int) string { return `["` + strings.Repeat(`\\\"`, n/4) + `"]` },
	"lone surrogates":     func(n int) string { return `"` + strings.Repeat(`\ud83d`, n/6) + `"` },
	"pairs of surrogates": func(n int) string { return `"` + strings.Repeat(`\ud83d\ude00`, n/12) + `"` },
	"a long number":       func(n int) string { return strings.Repeat("9", n) },
	"a long fraction":     func(n int) string { return "0." + strings.Repeat("0", n) + "1" },
	"a long exponent":     func(n int) string { return "1e" + strings.Repeat("9", n) },
	"zeros":               func(n int) string { return "1" + strings.Repeat("0", n) },
	"beyond ASCII":        func(n int) string { return `"` + strings.Repeat("é", n/2) + `"` },
	"no UTF-8":            func(n int) string { return `"` + strings.Repeat("\xff", n) + `"` },
	"near a mark":         func(n int) string { return `"` + strings.Repeat("<system-reminde", n/15) + `"` },
	"near it, in escapes": func(n int) string { return `"` + strings.Repeat(`\u003csystem-reminde`, n/20) + `"` },
}

// everything calls each function of the package on b, the walks down to the
// innermost value of two levels.
func everything(b []byte) {
	_ = Compact(b, MaxDepth)
	if Validate(b, MaxDepth) != nil {
		return
	}
	root := Root(b)
	visit(b, root, 2)
}

func visit(b []byte, v Value, levels int) {
	switch raw := b[v.From:v.To]; v.Kind(b) {
	case Object, Array:
		for w := Members(b, v); levels > 0 && w.Step(); {
			Equal(w.Name, "content")
			Fold(w.Name, "content")
			visit(b, w.Value, levels-1)
		}
	case String:
		raw = v.Text(b)
		Cut(raw, len(raw))
		Find(raw, 0, "<system-reminder")
	case Number:
		Integer(raw)
	}
}

// Whatever the shape, a walk ends in linear time, and without memory of its own.
func TestEveryShapeIsLinear(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			b := []byte(shape(long))
			growth.Linear(t, len(b), 0, 256, func() { everything(b) })
		})
	}
}

// What decodes or changes a text takes as much memory as what comes out.
func TestMemoryOfAppendAndApply(t *testing.T) {
	b := []byte(shapes["lone surrogates"](long))
	raw := Root(b).Text(b)
	growth.Linear(t, len(b), 1, 16<<10, func() { Append(nil, raw) })
	var e Edits
	for i := range 1000 {
		e.Add(i*7, i*7+1, strings.Repeat("x", 100))
	}
	growth.Linear(t, len(b)+1000*100, 1, 16<<10, func() { e.Apply(nil, b) })
}

func TestCompactBoundsWhiteSpace(t *testing.T) {
	t.Parallel()
	blank := func(n int) string { return strings.Repeat(" ", n) }
	for text, want := range map[string]string{
		`{"a" : [1, 2]}`:                         "",
		`{"a":` + blank(MaxBlank) + `1}`:         "",
		`"` + blank(2*MaxBlank) + `"`:            "",
		` {}`:                                    IssueBlank,
		"{}\n":                                   IssueBlank,
		blank(8192):                              IssueBlank,
		`{}` + blank(8192):                       IssueBlank,
		`{"a":` + blank(MaxBlank) + `1 }`:        IssueBlank,
		`[` + strings.Repeat(`1, `, 2000) + `1]`: IssueBlank,
		`{"a":` + blank(MaxBlank/2) + `1` + "\x00}": IssueByte,
		``: IssueEnd,
	} {
		err := Compact([]byte(text), MaxDepth)
		if got := ""; err != nil {
			got = err.Issue
			if got != want {
				t.Errorf("%.20q: %q, want %q", text, got, want)
			}
		} else if want != "" {
			t.Errorf("%.20q passes", text)
		}
		if err == nil && Validate(bytes.Clone([]byte(text)), MaxDepth) != nil {
			t.Errorf("%.20q is not valid", text)
		}
	}
}
