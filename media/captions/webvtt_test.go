package captions

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

const good = "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500 align:start\nHello\n\n00:02.500 --> 123:00:00.000\nWorld\n"

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	cases := map[string]int{
		good:                                    2,
		"WEBVTT":                                0,
		"\ufeffWEBVTT - Title\n\nNOTE no cue\n": 0,
		strings.ReplaceAll(good, "\n", "\r\n"):  2,
		strings.ReplaceAll(good, "\n", "\r"):    2,
	}
	for text, want := range cases {
		if n, p := Parse(text); n != want || p != nil {
			t.Errorf("%q: %d cues, %+v", text, n, p)
		}
	}
}

func TestBadFilesAreTraced(t *testing.T) {
	t.Parallel()
	cases := map[string]int{
		"":               1,
		"WEBVTTX":        1,
		"1\n00:01 --> 2": 1,
		"WEBVTT\n\n00:00:01,000 --> 00:00:02,000\n":                         3,
		"WEBVTT\n\n00:00:02.000 --> 00:00:01.000\n":                         3,
		"WEBVTT\n\n00:01.000 --> 00:02.000\na\n\n00:00.500 --> 00:03.000\n": 6,
		"WEBVTT\n00:61.000 --> 00:62.000":                                   2,
		"WEBVTT\n00:60:00.000 --> 00:61:00.000":                             2,
		"WEBVTT\n1.000 --> 2.000":                                           2,
		"WEBVTT\n00:01.000 -->":                                             2,
		"WEBVTT\n-1:01.000 --> 00:02.000":                                   2,
		"WEBVTT\n99999:00:01.000 --> 99999:00:02.000":                       2,
	}
	for text, want := range cases {
		if n, p := Parse(text); p == nil || p.Line != want {
			t.Errorf("%q: %d cues, %+v", text, n, p)
		}
	}
}

// shapes are files of about n bytes that cost a careless reader most.
var shapes = map[string]func(n int) string{
	"cues":          func(n int) string { return "WEBVTT\n" + strings.Repeat("00:01.000 --> 00:02.000\n", n/24) },
	"empty lines":   func(n int) string { return "WEBVTT" + strings.Repeat("\n", n) },
	"returns":       func(n int) string { return "WEBVTT" + strings.Repeat("\r", n) },
	"both":          func(n int) string { return "WEBVTT" + strings.Repeat("\r\n", n/2) },
	"settings":      func(n int) string { return "WEBVTT\n00:01.000 --> 00:02.000" + strings.Repeat(" a", n/2) },
	"blanks":        func(n int) string { return "WEBVTT\n00:01.000 -->" + strings.Repeat(" ", n) + "00:02.000" },
	"colons":        func(n int) string { return "WEBVTT\n" + strings.Repeat(":", n) + " --> 00:02.000" },
	"digits":        func(n int) string { return "WEBVTT\n" + strings.Repeat("9", n) + ":00:01.000 --> 00:02.000" },
	"arrows":        func(n int) string { return "WEBVTT\n" + strings.Repeat("-->", n/3) },
	"no UTF-8":      func(n int) string { return "WEBVTT\n00:01.000 --> " + strings.Repeat("\xff", n) },
	"a long header": func(n int) string { return "WEBVTT " + strings.Repeat("x", n) },
}

func TestWhatAFileCosts(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{64 << 10, 256 << 10} {
			text := shape(n)
			growth.Linear(t, len(text), 20, 64<<10, func() { Parse(text) })
			if t.Failed() {
				t.Fatal(name, n)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 20, 64<<10, func() { Parse(text) })
		if n, p := Parse(text); p == nil && n > strings.Count(text, "-->") {
			t.Fatalf("%d cues", n)
		}
	})
}
