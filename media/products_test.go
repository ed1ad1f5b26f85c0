package media_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/transcribe/speech/speechtest"
)

// withProducts gives the product what speaks and what reads, as `make test` names them.
func withProducts(t *testing.T) func(*media.Config) {
	t.Helper()
	return func(c *media.Config) {
		c.FFmpeg, c.Scratch = ffmpegtest.Tool(t).Binary, t.TempDir()
		c.Voice, c.Tesseract, c.Speech = os.Getenv("SLUICE_VOICE"), os.Getenv("SLUICE_TESSERACT"), os.Getenv("SLUICE_SPEECH")
		c.Plans = plans.Table{"": {FileBytes: 1 << 20, StorageBytes: 1 << 22}}
	}
}

func TestATextIsSpoken(t *testing.T) {
	t.Parallel()
	b := setup(t, withProducts(t))
	if got := b.do("POST", "/v1/voice", object{"text": "Good evening.", "format": "mp3"}).want(200); got.header.Get("Content-Type") != "audio/mpeg" || len(got.raw) < 4000 {
		t.Errorf("%d bytes, %v", len(got.raw), got.header)
	}
	if got := b.send("/v1/voice?speed=1.5", []byte("Good evening.")).want(200); string(got.raw[:4]) != "RIFF" {
		t.Errorf("%q", got.raw[:4])
	}
	if got := b.do("GET", "/v1/voice/voices", nil).want(200); !strings.Contains(string(got.raw), `"languages":["en-US"]`) {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/voice", object{"text": "", "speed": 9}).wantError(400, "invalid_request", "text", "speed")
	var health struct {
		Surfaces map[string]string
		Engines  map[string]struct{ Use, Health, Version string }
	}
	b.do("GET", "/health", nil).want(200).into(&health)
	v, e := health.Engines["voice"], health.Engines["vision"]
	if health.Surfaces["voice"] != "available" || v.Use != "builtin" || v.Health != "ok" || !strings.Contains(v.Version, "sherpa-onnx") || !strings.HasPrefix(e.Version, "Tesseract 5.5.2 (deu, eng)") {
		t.Errorf("%+v", health)
	}
}

// What one engine speaks the other understands, word for word.
func TestWhatIsSpokenIsUnderstood(t *testing.T) {
	t.Parallel()
	b := setup(t, withProducts(t), func(c *media.Config) { c.Plans = plans.Table{"": {FileBytes: 1 << 22}} })
	const text = "The stream starts at seven, and everybody is invited. Please bring your friends, a warm coat and something to drink."
	for _, format := range []string{"wav", "opus"} {
		sound := b.do("POST", "/v1/voice", object{"text": text, "format": format}).want(200).raw
		got := string(b.send("/v1/transcribe?format=text&language=en", sound).want(200).raw)
		// A voice never says a sentence twice in the same way, and who listens may take one word for another.
		if wrong := speechtest.ErrorRate(text, strings.ReplaceAll(got, "7", "seven")); wrong > 0.2 {
			t.Errorf("%s: %.0f %% of the words are wrong: %q", format, 100*wrong, got)
		}
	}
}

// A film of an account is looked at where it is asked for, by that account alone.
func TestAnAssetIsLookedAt(t *testing.T) {
	t.Parallel()
	b := setup(t, withProducts(t))
	id := b.send("/v1/vod/upload?title=Card", ffmpegtest.Film(t, "mp4")).want(201).text("id")
	var seen struct {
		Pictures []struct {
			Time   float64
			Width  int
			Colors []struct{ Hex string }
		}
	}
	b.do("POST", "/v1/vision?asset_id="+id+"&times=0.5,1.5&features=colors", nil).want(200).into(&seen)
	if len(seen.Pictures) != 2 || seen.Pictures[1].Time != 1.5 || seen.Pictures[0].Width != 320 || len(seen.Pictures[0].Colors) < 3 {
		t.Errorf("%+v", seen)
	}
	b.do("POST", "/v1/vision?asset_id="+id+"&times=2.5", nil).wantError(400, "invalid_request", "times")
	b.as(identityheader.Caller{Account: "acct_2"}, "POST", "/v1/vision?asset_id="+id, nil).wantError(404, "not_found")
}

// Without programs colours and faces are found all the same, and nobody is told that there
// is text.
func TestPicturesAreLookedAtWithoutPrograms(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *media.Config) { c.Now = time.Now; c.Plans = plans.Table{"": {FileBytes: 1 << 20}} })
	b.now = time.Now()
	p := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(p, p.Rect, image.NewUniform(color.RGBA{200, 30, 30, 255}), image.Point{}, draw.Src)
	var picture bytes.Buffer
	if err := png.Encode(&picture, p); err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/v1/vision", picture.String(), "Content-Type", "image/png").want(200); !strings.Contains(string(got.raw), `"hex":"#c81e1e"`) || strings.Contains(string(got.raw), "text") {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/vision?features=text", picture.String(), "Content-Type", "image/png").wantError(501, "not_implemented")
}
