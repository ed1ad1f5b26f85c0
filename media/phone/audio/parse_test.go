package audio_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/media/phone/audio"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/platform/limits/growth"
)

func TestKeysOfInfo(t *testing.T) {
	t.Parallel()
	cases := []struct {
		kind, body string
		want       audio.Key
		ok         bool
	}{
		{"application/dtmf-relay", "Signal=5\r\nDuration=160", audio.Key{Digit: "5", Lasted: 160 * time.Millisecond}, true},
		{"Application/DTMF-Relay; charset=utf-8", "signal = #\nduration = x", audio.Key{Digit: "#"}, true},
		{"application/dtmf-relay", "Signal=10\r\n", audio.Key{Digit: "*"}, true},
		{"application/dtmf", "a", audio.Key{Digit: "A"}, true},
		{"application/dtmf", "55", audio.Key{}, false},
		{"application/dtmf", "", audio.Key{}, false},
		{"text/plain", "5", audio.Key{}, false},
		{"application/dtmf-relay", "Duration=160", audio.Key{}, false},
	}
	for _, c := range cases {
		if got, ok := audio.ReadInfo(c.kind, []byte(c.body)); got != c.want || ok != c.ok {
			t.Errorf("%s %q: %+v, %v", c.kind, c.body, got, ok)
		}
	}
}

func TestAKeyIsHeardOnceAtItsEnd(t *testing.T) {
	t.Parallel()
	keys := audio.Keys{Rate: 8000}
	var heard []audio.Key
	for _, p := range []struct {
		at      uint32
		payload []byte
	}{{1, []byte{5, 10, 0, 160}}, {1, []byte{5, 0x8a, 5, 0}}, {1, []byte{5, 0x8a, 5, 0}}, {9, []byte{16, 0x8a, 5, 0}}, {9, []byte{11, 0x8a, 5}}, {9, []byte{11, 0x8a, 5, 0}}} {
		if k, ok := keys.Read(p.at, p.payload); ok {
			heard = append(heard, k)
		}
	}
	want := []audio.Key{{Digit: "5", Lasted: 160 * time.Millisecond}, {Digit: "#", Lasted: 160 * time.Millisecond}}
	if !slices.Equal(heard, want) {
		t.Errorf("%+v", heard)
	}
}

// ramp is n samples that count up from first.
func ramp(first int16, n int) []int16 {
	out := make([]int16, n)
	for i := range out {
		out[i] = first + int16(i)
	}
	return out
}

func TestSoundIsEvenWhateverArrives(t *testing.T) {
	t.Parallel()
	const rate, frame, delay = 1000, 20, 60
	take := func(b *audio.Buffer, n int) []int16 {
		out := make([]int16, n)
		b.Take(out)
		return out
	}
	cases := map[string]struct {
		put  func(b *audio.Buffer)
		want []int16
	}{
		"in order": {func(b *audio.Buffer) { b.Put(500, ramp(1, frame)); b.Put(520, ramp(21, frame)) }, ramp(1, 2*frame)},
		"swapped": {func(b *audio.Buffer) {
			b.Put(500, ramp(1, frame))
			b.Put(540, ramp(41, frame))
			b.Put(520, ramp(21, frame))
		}, ramp(1, 3*frame)},
		"twice":     {func(b *audio.Buffer) { b.Put(500, ramp(1, frame)); b.Put(500, ramp(1, frame)) }, append(ramp(1, frame), make([]int16, frame)...)},
		"one lost":  {func(b *audio.Buffer) { b.Put(500, ramp(1, frame)); b.Put(540, ramp(41, frame)) }, slices.Concat(ramp(1, frame), make([]int16, frame), ramp(41, frame))},
		"it wraps":  {func(b *audio.Buffer) { b.Put(0xfffffff6, ramp(1, frame)); b.Put(10, ramp(21, frame)) }, ramp(1, 2*frame)},
		"too long":  {func(b *audio.Buffer) { b.Put(0, ramp(1, rate)) }, make([]int16, frame)},
		"far ahead": {func(b *audio.Buffer) { b.Put(0, ramp(1, frame)); b.Put(90_000, ramp(7, frame)) }, ramp(7, frame)},
		"far back":  {func(b *audio.Buffer) { b.Put(90_000, ramp(1, frame)); b.Put(0, ramp(7, frame)) }, ramp(7, frame)},
	}
	for name, c := range cases {
		b := audio.NewBuffer(rate)
		c.put(b)
		if before := take(b, delay); !slices.Equal(before, make([]int16, delay)) && name != "too long" {
			t.Errorf("%s: sound before its time: %v", name, before)
		}
		if got := take(b, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	b := audio.NewBuffer(rate)
	b.Put(0, ramp(1, frame))
	take(b, delay+2*frame)
	b.Put(20, ramp(21, frame)) // too late
	if got := take(b, frame); !slices.Equal(got, make([]int16, frame)) {
		t.Errorf("late: %v", got)
	}
}

func TestG711HasTheValuesOfTheStandard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want []int16 }{
		sdp.PCMU: {[]int16{0xff, 0x7f, 0x80, 0x00, 0xf0}, []int16{0, 0, 32124, -32124, 120}},
		sdp.PCMA: {[]int16{0xd5, 0x55, 0xaa, 0x2a, 0xc5}, []int16{8, -8, 32256, -32256, 264}},
	} {
		d, err := audio.NewDecoder(sdp.Codec{Name: name, Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		var raw []byte
		for _, v := range c.payload {
			raw = append(raw, byte(v))
		}
		if got, err := d.Decode(raw); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if got, err := d.Decode(audio.Silence(sdp.Codec{Name: name})); err != nil || len(got) != 160 || got[0] > 8 || got[0] < -8 {
			t.Errorf("%s: silence is %v, %v", name, got[:3], err)
		}
		if _, err := d.Decode(make([]byte, 1501)); err == nil {
			t.Error("a payload that is too long is taken")
		}
	}
	d, err := audio.NewDecoder(sdp.Codec{Name: sdp.Opus, Rate: 48000})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Decode(audio.Silence(sdp.Codec{Name: sdp.Opus})); err != nil || len(got) != 960 {
		t.Errorf("Opus: silence is %d samples, %v", len(got), err)
	}
}

// A key is one of sixteen, whatever the body.
func FuzzReadInfo(f *testing.F) {
	f.Add("application/dtmf-relay", "Signal=5\r\nDuration=160")
	f.Add("application/dtmf", "#")
	f.Fuzz(func(t *testing.T, kind, body string) {
		growth.Linear(t, len(kind)+len(body), 4, 4<<10, func() { audio.ReadInfo(kind, []byte(body)) })
		if k, ok := audio.ReadInfo(kind, []byte(body)); ok && (len(k.Digit) != 1 || k.Lasted < 0 || k.Lasted > 10*time.Second) {
			t.Fatalf("%+v", k)
		}
	})
}

// No payload makes the decoder fail otherwise than by an error, or give more than a
// packet lasts.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0xf8, 0xff, 0xfe})
	f.Add([]byte{0x08, 0x0b, 0xe4, 0xc1, 0x36, 0xec, 0xc5, 0x80})
	f.Add([]byte{0xff, 0x03, 0x00})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, c := range []sdp.Codec{{Name: sdp.Opus, Rate: 48000}, {Name: sdp.PCMU, Rate: 8000}} {
			d, err := audio.NewDecoder(c)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time it has a past
				if out, err := d.Decode(payload); err == nil && len(out) > 5760 {
					t.Fatalf("%d samples", len(out))
				}
			}
		}
	})
}
