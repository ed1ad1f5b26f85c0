package tokens

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "hello": 1, "hello world": 2, "The quick brown fox jumps over the lazy dog.": 10,
	} {
		if got := Count(text); got != want {
			t.Errorf("Count(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCountOfLongTexts(t *testing.T) {
	t.Parallel()
	const unit = "The quick brown fox jumps over the lazy dog. "
	if got, want := Count(strings.Repeat(unit, 100)), 1001; got < want-10 || got > want+10 {
		t.Errorf("within the sample: %d, want about %d", got, want)
	}
	long := strings.Repeat(unit, 100_000)
	if got, want := Count(long), 1_000_000; got < want*98/100 || got > want*102/100 {
		t.Errorf("beyond the sample: %d, want about %d", got, want)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("hello world, 1234567 😀😀 ünïcödé \n\n\t x", 3)
	f.Add(strings.Repeat("a", 2000)+strings.Repeat("é", 700), 1000)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if !utf8.ValidString(text) || len(text) > 4000 {
			return
		}
		if whole := strings.Join(Split(text, len(text)+1), ""); whole != text {
			t.Fatalf("%q came back as %q", text, whole)
		}
		if n < 0 || n > 4000 {
			return
		}
		first := Split(text, n)
		if len(first) > n || !strings.HasPrefix(text, strings.Join(first, "")) {
			t.Fatalf("first %d of %q: %q", n, text, first)
		}
		if p := Prefix(text, n); p > len(text) || !utf8.ValidString(text[:p]) {
			t.Fatalf("prefix %d of %q ends at %d", n, text, p)
		}
	})
}

func TestMeterCutsAtTheLimit(t *testing.T) {
	t.Parallel()
	for name, pieces := range map[string][]string{
		"token by token": strings.SplitAfter("one two three four five six seven eight nine ten ", " "),
		"all at once":    {"one two three four five six seven eight nine ten "},
	} {
		m, got := Meter{Limit: 4}, ""
		for _, p := range pieces {
			fits := m.Add(p)
			got += p[:fits]
		}
		if n := Count(got); n > 4 || n < 3 || m.Total() != 4 {
			t.Errorf("%s: %q is %d tokens, total %d", name, got, n, m.Total())
		}
		if m.Add("more") != 0 {
			t.Errorf("%s: more fits behind the limit", name)
		}
	}
}

func TestMeterWithinTheLimit(t *testing.T) {
	t.Parallel()
	m := Meter{Limit: 50}
	text := strings.Repeat(" word", 50)
	for i := 0; i < len(text); i += 5 {
		if fits := m.Add(text[i : i+5]); fits != 5 {
			t.Fatalf("token %d does not fit", i/5+1)
		}
	}
	if m.Total() != 50 {
		t.Errorf("total %d", m.Total())
	}
	unlimited := Meter{}
	if unlimited.Add(strings.Repeat(" word", 5000)) != 25000 || unlimited.Total() != 5000 || len(unlimited.pending) > maxPending {
		t.Errorf("a long text: %d tokens, %d bytes held", unlimited.Total(), len(unlimited.pending))
	}
	unlimited = Meter{}
	if unlimited.Add(text) != len(text) || unlimited.Total() != 50 {
		t.Errorf("without a limit: %d", unlimited.Total())
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	image := `"data:image/png;base64,` + strings.Repeat("A", 100_000) + `"`
	for _, c := range []struct {
		body     string
		min, max int
	}{
		{`{"model":"m","messages":[{"role":"user","content":"hello world"}]}`, 5, 12},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":` + image + `}}]}]}`, 1024, 1060},
		{`{"messages":[],"tools":[{"function":{"name":"get_weather","description":"Says how the weather is"}}]}`, 8, 20},
		{`{"metadata":{"note":"` + strings.Repeat("not read ", 100) + `"},"messages":"x"}`, 3, 3},
		{`[]`, 3, 3},
	} {
		if n := Prompt([]byte(c.body)); n < c.min || n > c.max {
			t.Errorf("Prompt(%.60s) = %d", c.body, n)
		}
		if b := Bound([]byte(c.body)); b < Prompt([]byte(c.body)) {
			t.Errorf("Bound(%.60s) = %d is below the estimate", c.body, b)
		}
	}
}

func BenchmarkMeter(b *testing.B) {
	for b.Loop() {
		m := Meter{Limit: 1024}
		for range 1000 {
			m.Add(" word")
		}
	}
}

// The estimate of a prompt tokenizes a bounded part of it, wherever its text is.
func TestPromptsAreCountedInProportion(t *testing.T) {
	Count("load the vocabulary")
	message := func(n int, content string) string {
		return `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":`+content+`},`, n), ",") + `]}`
	}
	for name, shape := range map[string]func(n int) string{
		"one text":      func(n int) string { return message(1, `"`+strings.Repeat("some words ", n/11)+`"`) },
		"many messages": func(n int) string { return message(n/40, `"some words"`) },
		"one word":      func(n int) string { return message(1, `"`+strings.Repeat("x", n)+`"`) },
		"escapes":       func(n int) string { return message(1, `"`+strings.Repeat(`\u00e9`, n/6)+`"`) },
		"parts": func(n int) string {
			return message(1, `[`+strings.TrimSuffix(strings.Repeat(`{"text":"a"},`, n/13), ",")+`]`)
		},
		"tools": func(n int) string {
			return `{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"a":"b"},`, n/10), ",") + `]}`
		},
	} {
		for _, n := range []int{512 << 10, 2 << 20} {
			body := []byte(shape(n))
			growth.Linear(t, n, 3, 24<<20, func() { Prompt(body) })
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// What only looks like a picture counts as the text that it is.
func TestWhatLooksLikeAPictureIsCounted(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("some words ", 10_000)
	for name, body := range map[string]string{
		"a text":           `{"messages":[{"role":"user","content":"data:` + words + `"}]}`,
		"a part":           `{"messages":[{"role":"user","content":[{"type":"text","text":"data:` + words + `"}]}]}`,
		"a tool's default": `{"messages":[],"tools":[{"url":"data:` + words + `"}]}`,
	} {
		if n := Prompt([]byte(body)); n < 19_000 {
			t.Errorf("%s of 20,000 words: %d", name, n)
		}
	}
	// A sound counts by its length.
	sound := `{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + strings.Repeat("A", 8<<20) + `","format":"wav"}}]}]}`
	if n := Prompt([]byte(sound)); n < 4096 || n > 4200 {
		t.Errorf("eight megabytes of sound: %d", n)
	}
}
