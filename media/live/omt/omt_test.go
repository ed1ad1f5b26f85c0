package omt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// one is the only frame in b.
func one(t *testing.T, b []byte) frame {
	t.Helper()
	f, err := (&reader{r: bytes.NewReader(b)}).next()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSoundReadsAsWritten(t *testing.T) {
	t.Parallel()
	in := []float32{1, 0, -0.5, 0.25, 0, -0.25} // the second of three channels is silent
	var s Sound
	f := one(t, audio(7, 48000, 3, in))
	if err := sound(&s, f.data); err != nil || s.Rate != 48000 || s.Channels != 3 || !slices.Equal(s.Frames, []float32{1, 0, -0.5, 0.25, 0, -0.25}) {
		t.Errorf("%+v, %v", s, err)
	}
	if want := headerSize + audioSize + 2*2*4; len(audio(7, 48000, 3, in)) != want {
		t.Errorf("the silent channel is sent")
	}
	if f := one(t, metadata("<x/>")); f.kind != kindMetadata || string(f.data) != "<x/>\x00" {
		t.Errorf("%+v", f)
	}
}

// The bytes of the protocol's description: version, kind, timestamp, lengths, all
// little-endian.
func TestTheFormOfAFrame(t *testing.T) {
	t.Parallel()
	got := audio(0x0102, 48000, 1, []float32{1})
	want := []byte{1, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0,
		'F', 'P', 'A', '1', 0x80, 0xbb, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}
	if !bytes.Equal(got, want) {
		t.Errorf("% x\nwant\n% x", got, want)
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := audio(0, 48000, 1, []float32{1})
	edit := func(i int, b byte) []byte {
		out := slices.Clone(good)
		out[i] = b
		return out
	}
	for name, b := range map[string][]byte{"another version": edit(0, 2), "too long": edit(15, 1), "a negative length": edit(15, 0x80), "metadata longer than the frame": edit(11, 1), "cut off": good[:40]} {
		if f, err := (&reader{r: bytes.NewReader(b)}).next(); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, b := range map[string][]byte{"another codec": edit(16, 'X'), "no channels": edit(28, 0), "33 channels": edit(28, 33), "a channel beyond them": edit(32, 2), "more frames than are sent": edit(24, 2), "a rate": edit(23, 1)} {
		var s Sound
		if f := one(t, b); sound(&s, f.data) == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Pictures, which nobody asked for, are passed over.
func TestPicturesAreLeftOut(t *testing.T) {
	t.Parallel()
	b := append(header(nil, kindVideo, 0, 1<<20), make([]byte, 1<<20)...)
	r := reader{r: bytes.NewReader(append(b, metadata("<x/>")...))}
	if f, err := r.next(); err != nil || f.kind != kindMetadata || cap(r.buf) > 1<<10 {
		t.Errorf("%+v, %v, %d bytes held", f, err, cap(r.buf))
	}
}

// A receiver is sent what it has subscribed to, and one that only connects nothing.
func TestASenderAndItsReceiver(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var s Server
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	mute, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	got := make(chan Sound, 1)
	received := make(chan error, 1)
	go func() {
		received <- Receive(ctx, l.Addr().String(), func(s Sound) error {
			s.Frames = slices.Clone(s.Frames)
			select {
			case got <- s:
			default:
			}
			return nil
		})
	}()
	for len(got) == 0 && t.Context().Err() == nil {
		s.Send(48000, 2, []float32{0.5, -0.5, 0.25, -0.25})
	}
	if g := <-got; g.Channels != 2 || !slices.Equal(g.Frames, []float32{0.5, -0.5, 0.25, -0.25}) {
		t.Errorf("%+v", g)
	}
	cancel()
	if err := <-received; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if b, err := io.ReadAll(mute); len(b) > 0 {
		t.Errorf("%d bytes to who has not subscribed, %v", len(b), err)
	}
}

// broken is a listener that fails after its first connection.
type broken struct {
	net.Listener
	accepted bool
}

func (l *broken) Accept() (net.Conn, error) {
	if l.accepted {
		return nil, io.ErrUnexpectedEOF
	}
	l.accepted = true
	return l.Listener.Accept()
}

// A listener that fails ends the server, whoever is connected.
func TestAListenerThatFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := new(Server).Serve(t.Context(), &broken{Listener: l}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the receiver: %v", err)
	}
}

func FuzzSound(f *testing.F) {
	f.Add(audio(0, 48000, 2, []float32{1, 2, 3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Sound
		r := reader{r: bytes.NewReader(b)}
		for {
			got, err := r.next()
			if err != nil {
				break
			}
			if got.kind == kindAudio && sound(&s, got.data) == nil {
				for _, v := range s.Frames {
					if math.IsNaN(float64(v)) {
						t.Fatal("no number")
					}
				}
				if len(s.Frames)%s.Channels != 0 {
					t.Fatalf("%d frames of %d channels", len(s.Frames), s.Channels)
				}
			}
		}
		if len(b) >= headerSize {
			if size := binary.LittleEndian.Uint32(b[12:]); size > maxFrame && cap(r.buf) > maxFrame {
				t.Fatalf("%d bytes are held", cap(r.buf))
			}
		}
		growth.Linear(t, len(b), 64, 2*maxFrame+1<<20, func() {
			r := reader{r: bytes.NewReader(b)}
			for {
				if _, err := r.next(); err != nil {
					return
				}
			}
		})
	})
}
