package transcript

import (
	"math"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// said is a transcript of words of half a second each, with a pause behind those that
// end in |.
func said(text string) Transcript {
	t, at := Transcript{Language: "en"}, 0.0
	for w := range strings.FieldsSeq(text) {
		word, pause := strings.CutSuffix(w, "|")
		t.Words = append(t.Words, Word{word, at, at + 0.4})
		at += 0.5
		if pause {
			at += 2
		}
	}
	t.Duration = at + 1
	return t
}

func TestCuesFitOnAScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", ""},
		"one word":      {"Hello", "Hello"},
		"sentences":     {"It was the best. It was the worst.", "It was the best. / It was the worst."},
		"a short one":   {"No. It was not so.", "No. It was not so."},
		"a pause":       {"We had it| and then not", "We had it / and then not"},
		"two lines":     {"characteristically incomprehensible internationalization everywhere", "characteristically incomprehensible\ninternationalization everywhere"},
		"six seconds":   {"a b c d e f g h i j k l m n", "a b c d e f g h i j k l / m n"},
		"a long word":   {strings.Repeat("x", 100) + " y", strings.Repeat("x", 100) + " / y"},
		"many letters":  {strings.Repeat("abcdefghi ", 10), "abcdefghi abcdefghi abcdefghi abcdefghi\nabcdefghi abcdefghi abcdefghi abcdefghi / abcdefghi abcdefghi"},
		"not too small": {"Yes| no", "Yes / no"},
		"a long middle": {"abcdefghijklmnopqrstuvwxyzab abcdefghijklmnopqrstuvwxyza abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyzab\nabcdefghijklmnopqrstuvwxyza / abcdefghijklmnopqrstuvwxyz"},
	} {
		var got []string
		last := -1.0
		for _, cue := range said(c.text).Cues() {
			got = append(got, strings.Join(cue.Lines, "\n"))
			for _, line := range cue.Lines {
				if len(line) > lineLetters && strings.Contains(line, " ") {
					t.Errorf("%s: a line of %d letters: %s", name, len(line), line)
				}
			}
			if cue.Start < last || cue.End <= cue.Start || cue.End-cue.Start > cueLongest+0.5 {
				t.Errorf("%s: %+v after %.3f", name, cue, last)
			}
			last = cue.End
		}
		if text := strings.Join(got, " / "); text != c.want {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	tr := said("a<b & c --> d")
	tr.Segments = []Segment{{0, 0, 2, "a<b & c --> d"}}
	if got := tr.VTT(); got != "WEBVTT\n\n00:00:00.000 --> 00:00:02.400\na&lt;b &amp; c --&gt; d\n" {
		t.Errorf("%q", got)
	}
	if got := tr.SRT(); got != "1\n00:00:00,000 --> 00:00:02,400\na<b & c -> d\n" {
		t.Errorf("%q", got)
	}
	if got := tr.Plain(); got != "a<b & c --> d\n" {
		t.Errorf("%q", got)
	}
	if got := clock(3*3600+25*60+45.6789, "."); got != "03:25:45.679" {
		t.Error(got)
	}
}

// Whatever an engine says, a transcript has times in order and within its sound.
func TestPartsAreJoinedAndMended(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	var all Transcript
	all.Add(Transcript{Language: "en", Duration: 10, WordTimes: Measured, Engine: "e",
		Segments: []Segment{{7, 1, 2, " Hello \n there "}, {8, nan, nan, "odd"}, {9, 5, 50, "late"}, {9, 5, 6, " "}},
		Words:    []Word{{"Hello", 1, 1.5}, {"there", 0.5, 99}, {"odd", nan, nan}, {strings.Repeat("x", 1000), 5, 6}, {"", 6, 7}}}, 0)
	all.Add(Transcript{Duration: 5, Segments: []Segment{{0, 1, 2, "more"}}, Words: []Word{{"more", 1, 2}}}, 10)
	if all.Text != "Hello there odd late more" || all.Duration != 15 || len(all.Segments) != 4 || all.Segments[3] != (Segment{3, 11, 12, "more"}) {
		t.Errorf("%+v", all)
	}
	last := 0.0
	for _, w := range all.Words {
		if !(w.Start >= last && w.End >= w.Start && w.End <= all.Duration) {
			t.Errorf("%+v after %v", w, last)
		}
		last = w.Start
	}
	if len(all.Words) != 4 {
		t.Errorf("%+v", all.Words)
	}
}

// An engine may answer with more than anybody can have said, in any number of pieces.
func TestATranscriptIsBoundedByItsSound(t *testing.T) {
	many := Transcript{Duration: 120, Segments: slices.Repeat([]Segment{{Start: 1, End: 2, Text: "a"}}, 50_000), Words: slices.Repeat([]Word{{"a", 1, 2}}, 50_000)}
	room := 60 + 2*maxWords
	var all Transcript
	growth.Linear(t, 50_000, 50, 256<<10, func() {
		all = Transcript{}
		all.Add(many, 0)
	})
	if len(all.Segments) != room || len(all.Words) != room {
		t.Errorf("%d segments, %d words", len(all.Segments), len(all.Words))
	}
	all = Transcript{}
	all.Add(Transcript{Duration: 1, Segments: []Segment{{Text: strings.Repeat("x", 1<<20)}, {Text: "said"}}}, 0)
	if all.Text != "said" {
		t.Errorf("%d bytes", len(all.Text))
	}
}

// spoken is a sound with a tone where a word is: from and to in seconds.
func spoken(length float64, words ...[2]float64) []int16 {
	s := make([]int16, int(length*Rate))
	for i := range s {
		s[i] = int16(i % 7) // it is never quite silent
	}
	for _, w := range words {
		for i := int(w[0] * Rate); i < int(w[1]*Rate); i++ {
			s[i] = int16(8000 * math.Sin(float64(i)*0.2))
		}
	}
	return s
}

func TestWordsAreFoundBetweenPauses(t *testing.T) {
	t.Parallel()
	at := [][2]float64{{0.2, 0.9}, {1.1, 1.3}, {1.9, 2.7}}
	got := Estimate("wonderful, it happened", spoken(3, at...), 100)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, w := range got {
		if math.Abs(w.Start-100-at[i][0]) > 0.05 || math.Abs(w.End-100-at[i][1]) > 0.05 {
			t.Errorf("%+v, want %v", w, at[i])
		}
	}
}

func TestEveryWordHasATime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		samples []int16
	}{
		"silence":           {"one two three", make([]int16, Rate)},
		"one word":          {"one", spoken(1, [2]float64{0, 1})},
		"too many words":    {strings.Repeat("a ", 500), spoken(1, [2]float64{0, 1})},
		"a pause of 4 s":    {"one two", spoken(6, [2]float64{0, 1}, [2]float64{5, 6})},
		"no sound":          {"one", nil},
		"less than a frame": {"one", make([]int16, 10)},
	} {
		got := Estimate(c.text, c.samples, 0)
		if want := len(strings.Fields(c.text)); len(c.samples) >= frame && len(got) != want || len(c.samples) < frame && len(got) != 0 {
			t.Errorf("%s: %d words", name, len(got))
		}
		last := 0.0
		for _, w := range got {
			if !(w.Start >= last && w.End >= w.Start) {
				t.Errorf("%s: %+v after %v", name, w, last)
			}
			last = w.Start
		}
	}
}

// Whatever was said and heard, words are as many as in the text, in order.
func FuzzEstimate(f *testing.F) {
	f.Add("It was the best of times, it was the worst.", []byte("\x00\x10\x00\x90"), uint16(400))
	f.Fuzz(func(t *testing.T, text string, pattern []byte, frames uint16) {
		samples := make([]int16, int(frames%2000)*frame)
		for i := range samples {
			if len(pattern) > 0 {
				samples[i] = int16(pattern[(i/100)%len(pattern)]) << 6
			}
		}
		var words []Word
		growth.Linear(t, len(text)+2*len(samples), 100, 256<<10, func() { words = Estimate(text, samples, 1) })
		if len(samples) >= frame && len(words) != len(strings.Fields(text)) {
			t.Fatalf("%d words of %d", len(words), len(strings.Fields(text)))
		}
		var all Transcript
		all.Add(Transcript{Duration: float64(len(samples)) / Rate, Segments: []Segment{{Text: text}}, Words: words}, 0)
		last := 0.0
		for _, w := range all.Words {
			if !(w.Start >= last && w.End >= w.Start && w.End <= all.Duration) {
				t.Fatalf("%+v after %v of %v", w, last, all.Duration)
			}
			last = w.Start
		}
		if strings.Contains(all.VTT(), "\n\n\n") {
			t.Fatal("an empty cue")
		}
	})
}
