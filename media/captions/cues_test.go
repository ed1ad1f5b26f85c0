package captions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestCuesOfAFile(t *testing.T) {
	t.Parallel()
	const text = "WEBVTT\n\nNOTE not this\n\n1\n00:01.000 --> 00:02.500 line:0\n<v Ann>Hello &amp;\n<i>welcome</i>\n\n00:04.000 --> 00:03.000\nbackwards\n\n01:00:00.000 --> 01:00:01.000\r\nlate\r\n"
	want := []Cue{{time.Second, 2500 * time.Millisecond, "Hello & welcome"}, {time.Hour, time.Hour + time.Second, "late"}}
	if got := Cues(text, 10); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Cues(text, 1); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func FuzzCues(f *testing.F) {
	f.Add("WEBVTT\n\n00:01.000 --> 00:02.000\n<b>Hi\n")
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 60, 64<<10, func() { Cues(text, 100) })
		for _, c := range Cues(text, 100) {
			if c.End <= c.Start || strings.Contains(c.Text, "\n") {
				t.Fatalf("%+v", c)
			}
		}
	})
}
