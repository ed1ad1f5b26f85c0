package speech

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/transcribe/speech/speechtest"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

func TestSpeechIsWrittenDown(t *testing.T) {
	t.Parallel()
	p := &Program{Path: speechtest.Program(t), Dir: t.TempDir()}
	if version, err := p.Check(t.Context()); err != nil || version != Version {
		t.Fatalf("%s %v", version, err)
	}
	for _, r := range []speechtest.Recording{speechtest.Beckett, speechtest.TwoCities} {
		samples := r.Samples(t)
		got, err := p.Transcribe(t.Context(), samples, "en-US")
		if err != nil {
			t.Fatal(err)
		}
		text := &strings.Builder{}
		for _, s := range got.Segments {
			text.WriteString(s.Text + " ")
		}
		rate := speechtest.ErrorRate(r.Text, text.String())
		t.Logf("%s: %.1f s, %.1f %% of words wrong: %s", r.Name, got.Duration, 100*rate, text)
		if rate > 0.15 {
			t.Errorf("%s: %.0f %% of its words are wrong", r.Name, 100*rate)
		}
		last := 0.0
		for _, w := range got.Words {
			if w.Start < last || w.End <= w.Start || w.End > got.Duration {
				t.Errorf("%s: %+v after %.3f", r.Name, w, last)
			}
			last = w.Start
		}
	}
}

func TestSilenceSaysNothing(t *testing.T) {
	t.Parallel()
	p := &Program{Path: speechtest.Program(t), Dir: t.TempDir()}
	got, err := p.Transcribe(t.Context(), make([]int16, 3*transcript.Rate), "")
	if err != nil || len(got.Segments) != 0 || len(got.Words) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	p := &Program{Path: speechtest.Program(t), Dir: t.TempDir()}
	if _, err := p.Transcribe(t.Context(), nil, "de"); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("another language: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := p.Transcribe(gone, make([]int16, transcript.Rate), "en"); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever has left: %v", err)
	}
	if left, _ := os.ReadDir(p.Dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An engine without its files, or whose library does not fit, is known as such before
// anybody calls it.
func TestAnEngineThatDoesNotRunIsBroken(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, name := range append(Files, "program") {
		if err := os.WriteFile(filepath.Join(home, name), []byte("no library"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(speechtest.Program(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "real"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"no files": "/nowhere/program", "no program": filepath.Join(home, "program"), "another library": filepath.Join(home, "real")} {
		p := &Program{Path: path, Dir: t.TempDir()}
		if _, err := p.Check(t.Context()); err == nil || !p.Broken() {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	whole := &Program{Path: speechtest.Program(t), Dir: t.TempDir()}
	if version, err := whole.Check(t.Context()); err != nil || version != Version || whole.Broken() {
		t.Errorf("%s %v", version, err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out transcript.Transcript
	out.Duration = 10
	lines := "0.500 -- 1.500: It was.\nnoise\n2 -- 1: backwards\n3 -- 99: beyond\nNaN -- 2: odd\n4 -- 5:\n6.0 -- 7.0: 12:30 -- late\n"
	if err := Read(strings.NewReader(lines), make([]int16, 10*transcript.Rate), &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range out.Segments {
		got = append(got, s.Text)
	}
	if strings.Join(got, "|") != "It was.|12:30 -- late" {
		t.Errorf("%q", got)
	}
	if err := Read(strings.NewReader(strings.Repeat("x", maxLine+1)), nil, &out); err == nil {
		t.Error("a line without end is read")
	}
	if err := Read(strings.NewReader(strings.Repeat("1 -- 2: on and on\n", maxLines)), nil, &out); !errors.Is(err, errTooMuch) {
		t.Errorf("lines without end: %v", err)
	}
}

// A program that was taken over says of each of many lines that it lasts as long as the
// sound.
func TestWhatOverlappingLinesCost(t *testing.T) {
	samples, lines := make([]int16, 60*transcript.Rate), strings.Repeat("0 -- 60: a\n", 10_000)
	growth.Linear(t, len(lines)+2*len(samples), 100, 256<<10, func() {
		if err := Read(strings.NewReader(lines), samples, &transcript.Transcript{Duration: 60}); err != nil {
			t.Error(err)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add("0.5 -- 1.5: It was the best of times.\n")
	f.Fuzz(func(t *testing.T, text string) {
		samples := make([]int16, 2*transcript.Rate)
		var out transcript.Transcript
		growth.Linear(t, len(text), 200, 256<<10, func() {
			out = transcript.Transcript{Duration: 2}
			_ = Read(strings.NewReader(text), samples, &out)
		})
		for _, s := range out.Segments {
			if !(s.Start >= 0 && s.Start < s.End && s.End <= 3) || s.Text == "" {
				t.Fatalf("%+v", s)
			}
		}
	})
}
