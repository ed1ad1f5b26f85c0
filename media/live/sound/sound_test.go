package sound

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg"
)

// What an owner and the log are told of the engine has no password in it, and an end.
func TestThePasswordIsNotSaid(t *testing.T) {
	t.Parallel()
	p := Point{Host: "127.0.0.1:1", Path: "live/play_1", User: "inp_1", Password: "secret"}
	got := p.said(errors.New("dial " + p.address().String() + " \x00" + strings.Repeat("x", 1000)))
	if strings.Contains(got, "secret") || len(got) > 200 || !strings.Contains(got, "live/play_1") || strings.Contains(p.URL(), "secret") {
		t.Errorf("%s, %s", got, p.URL())
	}
}

func TestFramesReadAsWritten(t *testing.T) {
	t.Parallel()
	in := []float32{0, 1, -1, 0.25}
	got := framesOf(nil, bytesOf(nil, in))
	for i := range in {
		if got[i] != in[i] {
			t.Errorf("%v", got)
		}
	}
}

func TestWithoutFfmpeg(t *testing.T) {
	t.Parallel()
	if err := Publish(t.Context(), ffmpeg.Tool{}, Point{}, 1, nil); !errors.Is(err, ErrTool) {
		t.Error(err)
	}
}
