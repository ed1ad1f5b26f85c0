package compile

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/filters/schema"
	"sluice.dev/sluice/platform/limits/growth"
)

// parameters is a table of one parameter of each kind.
func parameters(t testing.TB) *schema.Table {
	t.Helper()
	b, faults := Table(Request{Parameters: []Parameter{
		{Name: "id", In: Path, Segment: 1, Required: true, Schema: `{"type":"integer"}`},
		{Name: "a", In: Query, Explode: true, Between: ',', Schema: `{"type":"array","items":{"type":["number","boolean"]},"uniqueItems":true}`},
		{Name: "b", In: Query, Between: '|', Schema: `{"type":"array","items":{"type":"string","pattern":"^[a-z ]*$"}}`},
		{Name: "c d", In: Query, Between: ',', Schema: `{"type":"string","maxLength":3}`},
	}}, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	return schema.Parse(b)
}

// Whatever a target is, reading it takes bounded memory; and of one that is let
// through, the path and the text are as they should be.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{"/x/1?a=1&a=true&b=a%7cb|c&c+d=%C3%A9", "/x/?a=&b", "/x/1?c%20d=%zz", "/x/01?a=1e5", "", "?", "/x/1?c+d=a%0Ab"} {
		f.Add(target)
	}
	table, c := parameters(f), new(schema.Checker)
	f.Fuzz(func(t *testing.T, target string) {
		growth.Linear(t, len(target), 512, 64<<10, func() {
			c.Start(table)
			c.Target(target)
		})
		if len(c.Details()) > 0 {
			return
		}
		path, query, _ := strings.Cut(target, "?")
		if id, err := url.PathUnescape(strings.Split(path, "/")[2]); err != nil || !regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`).MatchString(id) {
			t.Errorf("%q: the path is let through", target)
		}
		for _, v := range (func() url.Values { q, _ := url.ParseQuery(query); return q })()["c d"] {
			if utf8.RuneCountInString(v) > 3 && !strings.Contains(query, ";") {
				t.Errorf("%q: %q is let through", target, v)
			}
		}
	})
}

// Whatever the configuration is, it is a set of tables or none.
func FuzzParseSet(f *testing.F) {
	b, _ := Table(Request{}, nil)
	f.Add(schema.AppendSet(schema.AppendSet(schema.AppendSet(nil, []byte("base")), []byte("key")), b))
	f.Fuzz(func(t *testing.T, in []byte) {
		growth.Linear(t, len(in), 64, 16<<10, func() {
			if s, ok := schema.ParseSet(in); ok == (s == nil) {
				t.Error(s, ok)
			}
		})
	})
}
