package chapters

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/files/ffmpeg"
)

func TestWhereChaptersBegin(t *testing.T) {
	t.Parallel()
	scene := func(at, score float64) ffmpeg.Signals {
		return ffmpeg.Signals{Scenes: []ffmpeg.Scene{{At: at, Score: score}}}
	}
	quiet := func(s ffmpeg.Signals, from, to float64) ffmpeg.Signals {
		s.Silence = append(s.Silence, ffmpeg.Span{From: from, To: to})
		return s
	}
	said := func(from, to time.Duration) []captions.Cue {
		return []captions.Cue{{Start: from * time.Second, End: to * time.Second, Text: "x"}}
	}
	for name, c := range map[string]struct {
		seen ffmpeg.Signals
		cues []captions.Cue
		want []float64
	}{
		"nothing":                             {ffmpeg.Signals{}, nil, []float64{0}},
		"a soft change of scene":              {scene(50, 12), nil, []float64{0}},
		"a hard one":                          {scene(50, 30), nil, []float64{0, 50}},
		"a soft one in a silence":             {quiet(scene(50, 12), 49, 50.3), nil, []float64{0, 50}},
		"one that silence is far from":        {quiet(scene(50, 12), 20, 20.9), nil, []float64{0}},
		"a long silence":                      {quiet(ffmpeg.Signals{}, 48, 50), nil, []float64{0, 50}},
		"black":                               {ffmpeg.Signals{Black: []ffmpeg.Span{{From: 49, To: 50}}}, nil, []float64{0, 50}},
		"too close to the beginning":          {scene(5, 90), nil, []float64{0}},
		"too close to the end":                {scene(95, 90), nil, []float64{0}},
		"the better of two that are close":    {ffmpeg.Signals{Scenes: []ffmpeg.Scene{{At: 50, Score: 20}}, Black: []ffmpeg.Span{{From: 52, To: 53}}}, nil, []float64{0, 53}},
		"in the middle of what somebody says": {scene(50, 30), said(45, 55), []float64{0}},
		"in a pause":                          {scene(50, 1), said(60, 65), []float64{0, 50}},
	} {
		if got := divide(100, c.seen, c.cues, 10); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	var many ffmpeg.Signals
	for i := range 5000 {
		many.Scenes = append(many.Scenes, ffmpeg.Scene{At: float64(i), Score: 50})
	}
	if got := divide(5000, many, nil, 10); len(got) != mostFound || !slices.IsSorted(got) {
		t.Errorf("%d chapters", len(got))
	}
}

func TestTitlesAreWhatIsSaid(t *testing.T) {
	t.Parallel()
	cue := func(at int, text string) captions.Cue {
		return captions.Cue{Start: time.Duration(at) * time.Second, End: time.Duration(at+2) * time.Second, Text: text}
	}
	for text, want := range map[string]string{
		"Welcome to the show. Today we cook.": "Welcome to the show",
		"What is a lock? Let us see":          "What is a lock?",
		"And so":                              "And so it goes",
		"":                                    "it goes",
		strings.Repeat("word ", 20):           "word word word word word word word word word word word word…",
		strings.Repeat("語", 80):               strings.Repeat("語", 59) + "…",
		"a\u0085b\x00c":                       "a b c it goes",
	} {
		if got := title([]captions.Cue{cue(1, "before"), cue(10, text), cue(12, "it goes"), cue(30, "after")}, 10, 20, 2); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := title(nil, 10, 20, 3); got != "Chapter 3" {
		t.Error(got)
	}
}

func TestChaptersAsWebVTT(t *testing.T) {
	t.Parallel()
	end, same := 3661.5, 7.0
	text := vtt([]Chapter{{ID: "a", Title: "Bread & <butter> --> jam", Start: 0, End: &end}, {ID: "b", Title: "none", Start: 7, End: &same}, {ID: "c", Title: "Rest", Start: 3661.5}})
	const want = "WEBVTT\n\na\n00:00:00.000 --> 01:01:01.500\nBread &amp; &lt;butter&gt; --&gt; jam\n\nc\n01:01:01.500 --> 100:01:01.500\nRest\n"
	if text != want {
		t.Errorf("%q", text)
	}
	if n, problem := captions.Parse(text); n != 2 || problem != nil {
		t.Errorf("%d cues, %+v", n, problem)
	}
	if cues := captions.Cues(text, 10); len(cues) != 2 || cues[0].Text != "Bread & <butter> --> jam" {
		t.Errorf("%+v", cues)
	}
}
