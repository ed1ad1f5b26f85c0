package listener

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/media/transcribe/speech/speechtest"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

// heard cuts samples of 16 kHz, as they come from the media engine.
func heard(samples []int16) (list []utterance) {
	c := newCutter(func(u utterance) { list = append(list, u) })
	for _, s := range samples {
		f := float32(s) / 32768
		c.write([]float32{f, f, f})
	}
	c.flush()
	return list
}

// Cut at its pauses while it comes, speech is understood about as well as whole.
func TestWhatIsCutIsUnderstood(t *testing.T) {
	t.Parallel()
	p := &speech.Program{Path: speechtest.Program(t), Dir: t.TempDir()}
	for _, r := range []speechtest.Recording{speechtest.Beckett, speechtest.TwoCities} {
		var said strings.Builder
		list := heard(r.Samples(t))
		for _, u := range list {
			got, err := p.Transcribe(t.Context(), u.samples, "en")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got.Segments {
				said.WriteString(s.Text + " ")
			}
			if length := len(u.samples) - 2*around; length > longest*frame {
				t.Errorf("%s: an utterance of %d samples", r.Name, length)
			}
		}
		rate := speechtest.ErrorRate(r.Text, said.String())
		t.Logf("%s: %d utterances, %.1f %% of words wrong: %s", r.Name, len(list), 100*rate, said.String())
		if rate > 0.2 {
			t.Errorf("%s: %.0f %% of words are wrong", r.Name, 100*rate)
		}
	}
}

// tone is a sound of so many seconds.
func tone(seconds, loud float64) []int16 {
	s := make([]int16, int(seconds*16000))
	for i := range s {
		s[i] = int16(loud * math.Sin(float64(i)/5))
	}
	return s
}

func TestWhereSoundIsCut(t *testing.T) {
	t.Parallel()
	silence := func(seconds float64) []int16 { return tone(seconds, 0) }
	for name, c := range map[string]struct {
		sound []int16
		want  []float64 // where utterances begin and how long they are, in seconds
	}{
		"silence":         {silence(30), nil},
		"a click":         {slices.Concat(silence(1), tone(0.1, 9000), silence(2)), nil},
		"two":             {slices.Concat(silence(2), tone(1, 9000), silence(1), tone(2, 9000), silence(1)), []float64{1.7, 1.8, 3.7, 2.8}},
		"until the end":   {slices.Concat(silence(1), tone(2, 9000)), []float64{0.7, 2.3}},
		"without a pause": {slices.Concat(tone(5.5, 9000), tone(0.1, 2000), tone(2.4, 9000), silence(1)), []float64{0, 5.6, 5.6, 2.9}},
	} {
		var got []float64
		for _, u := range heard(c.sound) {
			got = append(got, u.at.Seconds()+0.3, float64(len(u.samples))/16000-0.6)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 0.05 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// Values that are no sound, and any number of them, are cut all the same.
func TestOddSoundIsCut(t *testing.T) {
	t.Parallel()
	n := 0
	c := newCutter(func(u utterance) { n += len(u.samples) - 2*around })
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e30, -1e30, 0.5, 0}
	for i := range 60 * 48000 {
		c.write(odd[i%len(odd) : i%len(odd)+1])
	}
	if c.flush(); n == 0 || n > 61*16000 || cap(c.now) > 8*16000 {
		t.Errorf("%d samples, %d held", n, cap(c.now))
	}
}

func TestWhatWaitsIsWrittenTogether(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	q := &queue{some: make(chan struct{}, 1)}
	for i := range waiting + 1 {
		if dropped := q.push(dated{at.Add(time.Duration(i) * 2 * time.Second), tone(1, float64(i))}); dropped != (i == waiting) {
			t.Errorf("%d: %v", i, dropped)
		}
	}
	u, ok := q.pop(t.Context())
	if !ok || !u.at.Equal(at.Add(2*time.Second)) || len(u.samples) != 5*16000 || u.samples[16000] != 0 || !slices.Equal(u.samples[4*16000:], tone(1, 3)) {
		t.Errorf("%v %v, %d samples", ok, u.at, len(u.samples))
	}
	q.push(dated{at, tone(15, 1)})
	q.push(dated{at.Add(15 * time.Second), tone(6, 1)})
	q.close()
	for _, want := range []int{15, 6} {
		if u, ok := q.pop(t.Context()); !ok || len(u.samples) != want*16000 {
			t.Errorf("%v, %d samples, want %d s", ok, len(u.samples), want)
		}
	}
	if _, ok := q.pop(t.Context()); ok {
		t.Error("there is more")
	}
}

// Sound that is held up for a moment moves no utterance; one that stays away does.
func TestTheTimeOfSound(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var c clock
	for i, late := range []time.Duration{300, 100, 900, 200} { // ms
		c.heard(begun.Add(time.Duration(i+1)*time.Second+late*time.Millisecond), 48000)
	}
	if got := c.at(utterance{at: 2 * time.Second}).at.Sub(begun); got != 2100*time.Millisecond {
		t.Error(got)
	}
	c.heard(begun.Add(10*time.Second), 48000) // five seconds are missing
	if got := c.at(utterance{at: 4 * time.Second}).at.Sub(begun); got != 9*time.Second {
		t.Error(got)
	}
}
