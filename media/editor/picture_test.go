package editor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"testing"
	"time"

	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

// reel are the films of a test, by the ids that timelines name them with.
type reel struct {
	t     *testing.T
	films map[string][]byte
	known map[string]found
}

// newReel has four films: red, green and blue of 320 by 240 pixels, and wide, which is
// yellow and of 320 by 80, each two seconds long with a tone.
func newReel(t *testing.T) *reel {
	t.Helper()
	r := &reel{t, map[string][]byte{}, map[string]found{}}
	for _, colour := range []string{"red", "lime", "blue"} {
		r.add(colour, ffmpegtest.Plain(t, colour, 2, 320, 240, 0))
	}
	r.add("wide", ffmpegtest.Plain(t, "yellow", 2, 320, 80, 0))
	return r
}

func (r *reel) add(id string, film []byte) {
	r.t.Helper()
	info, err := mp4.Parse(bytes.NewReader(film), int64(len(film)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.films[id] = film
	r.known[id] = found{Source: Source{AssetID: id, FileID: id, Size: int64(len(film)), Length: info.Duration.Seconds(), Width: info.Width, Height: info.Height, Sound: info.AudioCodec != ""}}
}

// plan checks a timeline, as JSON.
func (r *reel) plan(body string) (plan, error) {
	r.t.Helper()
	var in Input
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		r.t.Fatal(err)
	}
	return check(in, func(id string) found {
		f, ok := r.known[id]
		if !ok {
			f.problem = "names nothing of yours"
		}
		return f
	})
}

// made is what came of a timeline.
type made struct {
	t      *testing.T
	frames [][]byte
	sound  []float32
	info   mp4.Info
	bytes  int64
	plan   plan
}

// grid is the side of decoded pictures.
const grid = 40

// render makes the film of a timeline.
func (r *reel) render(body string) made {
	r.t.Helper()
	p, err := r.plan(body)
	if err != nil {
		r.t.Fatal(err)
	}
	film := r.run(p)
	info, err := mp4.Parse(bytes.NewReader(film), int64(len(film)))
	if err != nil {
		r.t.Fatal(err)
	}
	return made{r.t, ffmpegtest.Pixels(r.t, film, grid), ffmpegtest.Samples(r.t, film), info, int64(len(film)), p}
}

// run makes the film of a plan.
func (r *reel) run(p plan) []byte {
	r.t.Helper()
	tool := ffmpegtest.Tool(r.t)
	folder, err := tool.NewFolder()
	if err != nil {
		r.t.Fatal(err)
	}
	defer folder.Close()
	for _, n := range p.used() {
		if err := os.WriteFile(folder.File(sourceName(n)), r.films[p.sources[n].FileID], 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := p.make(r.t.Context(), tool, folder, p.largest(), time.Minute, func(time.Duration) {}); err != nil {
		r.t.Fatal(err)
	}
	film, err := os.ReadFile(folder.Output())
	if err != nil {
		r.t.Fatal(err)
	}
	return film
}

// at is the colour of a place, in shares of the picture, of a frame.
func (m made) at(frame int, x, y float64) color.NRGBA {
	m.t.Helper()
	if frame >= len(m.frames) {
		m.t.Fatalf("there is no frame %d of %d", frame, len(m.frames))
	}
	i := 3 * (int(y*grid)*grid + int(x*grid))
	f := m.frames[frame]
	return color.NRGBA{f[i], f[i+1], f[i+2], 255}
}

// want compares a colour, with what encoding takes away.
func (m made) want(what string, frame int, x, y float64, want color.NRGBA) {
	m.t.Helper()
	got := m.at(frame, x, y)
	for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
		if d < -14 || d > 14 {
			m.t.Errorf("%s: frame %d at %g, %g is %v, want %v", what, frame, x, y, got, want)
			return
		}
	}
}

// loud is the level of the sound from a time to another, in seconds, as dB of the peak of
// a sine that would sound like it.
func (m made) loud(from, to float64) float64 {
	m.t.Helper()
	var sum float64
	part := m.sound[int(from*48000):int(to*48000)]
	for _, s := range part {
		sum += float64(s) * float64(s)
	}
	return 20 * math.Log10(math.Sqrt(2*sum/float64(len(part)))+1e-9)
}

func rgb(r, g, b uint8) color.NRGBA { return color.NRGBA{r, g, b, 255} }

var (
	red, lime, blue, black, white, yellow = rgb(255, 0, 0), rgb(0, 255, 0), rgb(0, 0, 255), rgb(0, 0, 0), rgb(255, 255, 255), rgb(255, 255, 0)
	tone                                  = 20 * math.Log10(0.125) // of the films
)

func TestClipsFollowOneAnother(t *testing.T) {
	t.Parallel()
	r := newReel(t)
	m := r.render(`{"timeline": {"clips": [{"asset_id": "red", "in": 0.5, "out": 1.5}, {"asset_id": "lime", "out": 0.5}, {"asset_id": "wide", "speed": 2}]}}`)
	if len(m.frames) != 75 || m.plan.frames != 75 {
		t.Fatalf("%d frames, planned %d", len(m.frames), m.plan.frames)
	}
	if d := m.info.Duration.Seconds() - 2.5; math.Abs(d) > 0.05 || m.info.Width != 320 || m.info.Height != 240 || m.info.VideoCodec != "avc1" || m.info.AudioCodec != "mp4a" {
		t.Errorf("%+v", m.info)
	}
	for _, f := range []int{0, 29} {
		m.want("first", f, 0.5, 0.5, red)
	}
	for _, f := range []int{30, 44} {
		m.want("second", f, 0.5, 0.5, lime)
	}
	for _, f := range []int{45, 74} {
		m.want("third", f, 0.5, 0.5, yellow)
		m.want("its bars", f, 0.5, 0.1, black)
		m.want("its bars", f, 0.5, 0.9, black)
	}
	if got := m.loud(0.1, 2.4); math.Abs(got-tone) > 1 {
		t.Errorf("%.1f dB, want %.1f", got, tone)
	}
	if m.bytes > m.plan.largest() {
		t.Errorf("%d bytes, at most %d were expected", m.bytes, m.plan.largest())
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	r := newReel(t)
	m := r.render(`{"timeline": {"fade_in": 0.5, "fade_out": 0.5, "clips": [{"asset_id": "red"},
		{"asset_id": "lime", "transition": {"type": "crossfade", "duration": 1}},
		{"asset_id": "blue", "transition": {"type": "fade", "duration": 1}},
		{"asset_id": "wide", "fit": "cover", "transition": {"type": "cut"}}]}, "output": {"frame_rate": 30}}`)
	// red 0–2, both 1–2, lime to 3, fades at 2.5 to 3.5, blue 3–5, wide 5–7.
	if len(m.frames) != 210 || math.Abs(float64(len(m.sound))/48000-7) > 0.05 {
		t.Fatalf("%d frames, %d samples", len(m.frames), len(m.sound))
	}
	m.want("from black", 0, 0.5, 0.5, black)
	m.want("half", 7, 0.5, 0.5, rgb(119, 0, 0))
	m.want("there", 20, 0.5, 0.5, red)
	m.want("before the crossfade", 29, 0.5, 0.5, red)
	m.want("after it", 61, 0.5, 0.5, lime)
	mid := m.at(45, 0.5, 0.5)
	if mid.R < 80 || mid.R > 190 || mid.G < 80 || mid.G > 190 {
		t.Errorf("a crossfade shows both: %v", mid)
	}
	m.want("before the fade", 74, 0.5, 0.5, lime)
	m.want("black between", 90, 0.5, 0.5, black)
	m.want("after it", 106, 0.5, 0.5, blue)
	m.want("the last clip covers all", 152, 0.5, 0.05, yellow)
	if last := m.at(209, 0.5, 0.5); last.R > 40 {
		t.Errorf("the end is %v", last)
	}
	if a, b := m.loud(0, 0.1), m.loud(0.6, 0.9); a > b-6 {
		t.Errorf("the sound begins at %.1f dB and goes on at %.1f", a, b)
	}
	if got := m.loud(2.98, 3.02); got > tone-15 {
		t.Errorf("%.1f dB in the middle of a fade", got)
	}
}

func TestSoundIsMixed(t *testing.T) {
	t.Parallel()
	r := newReel(t)
	r.add("music", ffmpegtest.Plain(t, "black", 2, 64, 64, 6))
	r.add("dumb", ffmpegtest.Make(t, "-f", "lavfi", "-i", "color=c=white:s=320x240:r=30:d=2", "-c:v", "libx264", "-pix_fmt", "yuv420p"))
	m := r.render(`{"timeline": {"clips": [{"asset_id": "red", "gain": -12}, {"asset_id": "dumb"}, {"asset_id": "lime", "mute": true}],
		"audio": [{"asset_id": "music", "start": 2.5, "in": 0.5, "out": 1.5, "gain": -3}]}}`)
	for _, c := range []struct{ from, to, want float64 }{{0.2, 1.8, tone - 12}, {2.1, 2.4, -120}, {2.6, 3.4, tone + 3}, {3.7, 5.9, -120}} {
		if got := m.loud(c.from, c.to); math.Abs(got-c.want) > 1 && (c.want > -100 || got > -60) {
			t.Errorf("%g to %g: %.1f dB, want %.1f", c.from, c.to, got, c.want)
		}
	}
}

func TestOverlaysStandWhereAndWhenTheyAreAsked(t *testing.T) {
	t.Parallel()
	r := newReel(t)
	var picture bytes.Buffer
	square := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := range square.Pix {
		square.Pix[i] = 255
	}
	if err := png.Encode(&picture, square); err != nil {
		t.Fatal(err)
	}
	m := r.render(fmt.Sprintf(`{"timeline": {"clips": [{"asset_id": "red"}], "overlays": [
		{"type": "image", "image": %q, "width": 0.25, "x": 1, "y": 0, "start": 0.5, "end": 1},
		{"type": "image", "image": %q, "x": 0, "y": 0, "opacity": 0.5},
		{"type": "text", "text": "MMMMM", "size": 0.3, "x": 0.5, "y": 1, "color": "#0000ff", "background": "#ffff00", "start": 1}]}}`,
		base64.StdEncoding.EncodeToString(picture.Bytes()), base64.StdEncoding.EncodeToString(picture.Bytes())))
	if len(m.frames) != 60 {
		t.Errorf("%d frames", len(m.frames))
	}
	m.want("before it comes", 14, 0.9, 0.1, red)
	m.want("while it is there", 15, 0.9, 0.1, white)
	m.want("beside it", 15, 0.7, 0.1, red)
	m.want("at its end", 29, 0.9, 0.1, white)
	m.want("after it", 30, 0.9, 0.1, red)
	m.want("half seen", 40, 0.1, 0.1, rgb(255, 128, 128))
	m.want("no text yet", 29, 0.5, 0.95, red)
	m.want("the ground of the text", 30, 0.5, 0.975, yellow)
	letters := 0
	for x := 0.2; x < 0.8; x += 1.0 / grid {
		for y := 0.7; y < 1; y += 1.0 / grid {
			if c := m.at(45, x, y); c.B > 150 && c.R < 100 {
				letters++
			}
		}
	}
	if letters < 10 {
		t.Errorf("%d places with letters", letters)
	}
}

// A preview shows what the render shows at that time.
func TestAPreviewIsAFrameOfTheRender(t *testing.T) {
	t.Parallel()
	r := newReel(t)
	const body = `{"timeline": {"fade_in": 1, "clips": [{"asset_id": "red"}, {"asset_id": "lime", "transition": {"type": "crossfade"}}, {"asset_id": "blue", "transition": {"type": "fade"}}],
		"overlays": [{"type": "text", "text": "Hi", "size": 0.3, "start": 2.5, "background": "#ffffff"}]}, "output": {"width": 160, "height": 120, "frame_rate": 10}}`
	m := r.render(body)
	p, err := r.plan(body)
	if err != nil {
		t.Fatal(err)
	}
	tool := ffmpegtest.Tool(t)
	for _, frame := range []int{0, 5, 9, 12, 17, 22, 26, 29, 32, 49} {
		folder, err := tool.NewFolder()
		if err != nil {
			t.Fatal(err)
		}
		small, which := p.at(frame)
		for _, n := range small.used() {
			if err := os.WriteFile(folder.File(sourceName(n)), r.films[p.sources[n].FileID], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := small.writeLayers(folder); err != nil {
			t.Fatal(err)
		}
		if err := tool.Run(t.Context(), folder, small.picture(which), 1<<20, time.Minute); err != nil {
			t.Fatalf("%d: %v", frame, err)
		}
		raw, err := os.ReadFile(folder.Output())
		if err != nil {
			t.Fatal(err)
		}
		seen, err := jpeg.Decode(bytes.NewReader(raw))
		if err != nil || seen.Bounds().Dx() != 160 || seen.Bounds().Dy() != 120 {
			t.Fatalf("%v, %v", seen.Bounds(), err)
		}
		for _, at := range [][2]float64{{0.1, 0.1}, {0.9, 0.9}} {
			want := m.at(frame, at[0], at[1])
			c := color.NRGBAModel.Convert(seen.At(int(at[0]*160), int(at[1]*120))).(color.NRGBA)
			for _, d := range []int{int(c.R) - int(want.R), int(c.G) - int(want.G), int(c.B) - int(want.B)} {
				if d < -24 || d > 24 {
					t.Errorf("frame %d at %v is %v, in the render %v", frame, at, c, want)
					break
				}
			}
		}
		folder.Close()
	}
}
