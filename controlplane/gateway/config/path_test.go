package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestPathsMatch(t *testing.T) {
	t.Parallel()
	cases := []struct{ pattern, matches, misses string }{
		{"/", "/", "/a //"},
		{"/v1/streams", "/v1/streams", "/v1/streams/ /v1/stream /v1/streams/a"},
		{"/v1/streams/{id}", "/v1/streams/a /v1/streams/a.b-c~%20", "/v1/streams /v1/streams/ /v1/streams/a/b"},
		{"/v1/streams/{id}/captions/{lang}", "/v1/streams/a/captions/en", "/v1/streams/a/captions"},
		{"/x/*", "/x/ /x/a /x/a/b", "/x /xy"},
		{"/*", "/ /a /a/b", ""},
		{"/a.b", "/a.b", "/aXb"},
		{"/a/", "/a/", "/a /a/b /a//"},
		{"/a/{b}/", "/a/x/", "/a/x /a// /a/x/y"},
		{"/{a}/*", "/x/ /x/y/z", "/ /x //y"},
	}
	for _, c := range cases {
		p, err := ParsePath(c.pattern)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		re := regexp.MustCompile(`^(?:` + p.Regexp() + `)$`)
		for _, path := range strings.Fields(c.matches) {
			if !re.MatchString(path) {
				t.Errorf("%s does not match %s", c.pattern, path)
			}
		}
		for _, path := range strings.Fields(c.misses) {
			if re.MatchString(path) {
				t.Errorf("%s matches %s", c.pattern, path)
			}
		}
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "a", "/a//b", "/a//", "/a/../b", "/a/./b", "/a b", "/a?b", "/a#b", "/%2f", "/{}", "/{A}", "/{a}b", "/*/a", "/a*", "/é", "/" + strings.Repeat("a", 512)} {
		if _, err := ParsePath(path); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}

func TestMoreSpecificPathsComeFirst(t *testing.T) {
	t.Parallel()
	want := []string{"/v1/streams", "/v1/streams/", "/v1/streams/live", "/v1/streams/{id}", "/v1/streams/{id}/", "/v1/streams/{id}/embed", "/v1/streams/{id}/{part}", "/v1/streams/*", "/v1/{any}", "/{version}/streams", "/*"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int { return parse(t, a).Compare(parse(t, b)) })
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if parse(t, "/a/{b}/*").Compare(parse(t, "/a/{c}/*")) != 0 {
		t.Error("the name of a variable counts")
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{"/*": "/", "/x/*": "/x/", "/a/b/*": "/a/b/"} {
		if got, ok := parse(t, pattern).Prefix(); !ok || got != want {
			t.Errorf("%s: %q %v", pattern, got, ok)
		}
	}
	for _, pattern := range []string{"/", "/x", "/{x}/*"} {
		if got, ok := parse(t, pattern).Prefix(); ok {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}

func parse(t testing.TB, s string) Pattern {
	t.Helper()
	p, err := ParsePath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func FuzzParsePath(f *testing.F) {
	f.Add("/v1/streams/{id}")
	f.Add("/x/*")
	f.Add("/a//{")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 64, 8<<10, func() { _, _ = ParsePath(s) })
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		re, err := regexp.Compile(`^(?:` + p.Regexp() + `)$`)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if p.IsLiteral() && !re.MatchString(s) {
			t.Errorf("%q does not match itself", s)
		}
		if p.Compare(p) != 0 {
			t.Errorf("%q is not equal to itself", s)
		}
	})
}
