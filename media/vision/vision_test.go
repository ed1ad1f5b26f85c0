package vision_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(map[string]func() int{vision.Function: vision.Child, probe.Function: probe.Child})
	os.Exit(m.Run())
}

// desk is a product with a caller in front of it.
type desk struct {
	t *testing.T
	http.Handler
}

// serve sets a product up; the frames of asset_1 are a picture.
func serve(t *testing.T, s engines.Setting, tesseract string, frame []byte) desk {
	t.Helper()
	v := vision.Service{Plans: plans.Table{}, FFmpeg: ffmpegtest.Tool(t), Probe: probe.New(), Bodies: fairshare.New(fairshare.Config{Places: 64}), Converting: fairshare.New(fairshare.Config{Places: 64}),
		Engine: &engines.Product[vision.Seer]{Name: engines.Vision, What: "image recognition",
			Settings: func(context.Context) engines.Settings { return engines.Settings{engines.Vision: s} },
			Builtin:  func() (vision.Seer, bool) { return vision.Builtin{Tesseract: tesseract}, true },
			Remote:   func(a *remote.API) vision.Seer { return vision.Remote{API: a} }},
		Frame: func(_ context.Context, o owner.Owner, asset string, _ float64, use func(*os.File) error) error {
			if asset != "asset_1" || o.ID != "acct_1" {
				return &apierror.Error{Code: decision.NotFound}
			}
			name := filepath.Join(t.TempDir(), "frame")
			if err := os.WriteFile(name, frame, 0o600); err != nil {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return use(f)
		}}
	a := httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}
	r := chi.NewRouter()
	r.Use(identity.Verifier{Secrets: func() [][]byte { return [][]byte{[]byte("secret")} }}.Require(a))
	v.Routes(r, a)
	return desk{t, r}
}

// tesseract is the one that `make test` names.
func tesseract(t *testing.T) string {
	t.Helper()
	name := os.Getenv("SLUICE_TESSERACT")
	if _, err := os.Stat(name); err != nil {
		t.Fatal("there is no tesseract: run `make test`, which fetches one")
	}
	return name
}

func (d desk) post(query, kind string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/v1/vision"+query, bytes.NewReader(body))
	r.Header.Set(identityheader.Header, identityheader.Sign([]byte("secret"), identityheader.Caller{Account: "acct_1"}, time.Now().Unix()))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// see sends a picture or a film, and wants it looked at.
func (d desk) see(query string, body []byte) vision.Result {
	d.t.Helper()
	w := d.post(query, "application/octet-stream", body)
	var r vision.Result
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
		d.t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	return r
}

// page is a picture of these lines, black on white.
func page(t *testing.T, lines ...string) *image.RGBA {
	t.Helper()
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: 32, DPI: 72})
	if err != nil {
		t.Fatal(err)
	}
	p := image.NewRGBA(image.Rect(0, 0, 700, 44*len(lines)+40))
	draw.Draw(p, p.Rect, image.White, image.Point{}, draw.Src)
	for i, line := range lines {
		d := font.Drawer{Dst: p, Src: image.Black, Face: face, Dot: fixed.P(40, 44*i+60)}
		d.DrawString(line)
	}
	return p
}

func encoded(t *testing.T, p image.Image, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, p)
	case "gif":
		err = gif.Encode(&b, p, nil)
	default:
		err = jpeg.Encode(&b, p, &jpeg.Options{Quality: 90})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The words of a picture are read where they stand, whatever its format, and turned as its
// camera was.
func TestTextIsRead(t *testing.T) {
	t.Parallel()
	d := serve(t, engines.Setting{}, tesseract(t), nil)
	p := page(t, "The stream starts at seven", "and everybody is invited.")
	turned := image.NewRGBA(image.Rect(0, 0, p.Rect.Dy(), p.Rect.Dx())) // by a camera that was held to the left
	for y := range p.Rect.Dy() {
		for x := range p.Rect.Dx() {
			turned.Set(y, p.Rect.Dx()-1-x, p.At(x, y))
		}
	}
	webp := filepath.Join(t.TempDir(), "p.webp")
	convert := exec.Command(ffmpegtest.Tool(t).Binary, "-loglevel", "error", "-f", "png_pipe", "-i", "-", "-c:v", "libwebp", webp)
	convert.Stdin = bytes.NewReader(encoded(t, p, "png"))
	if out, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	webpBytes, err := os.ReadFile(webp)
	if err != nil {
		t.Fatal(err)
	}
	for format, bytes := range map[string][]byte{"png": encoded(t, p, "png"), "jpeg": encoded(t, p, "jpeg"), "gif": encoded(t, p, "gif"), "webp": webpBytes, "jpeg, turned": exif(encoded(t, turned, "jpeg"), 6)} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r := desk{t, d.Handler}.see("?features=text&language=en,de", bytes)
			seen := r.Pictures[0]
			if seen.Text == nil || seen.Text.Text != "The stream starts at seven\nand everybody is invited." || len(seen.Text.Words) != 9 || seen.Width != 700 || seen.Height != 128 || seen.Format != strings.Split(format, ",")[0] {
				t.Fatalf("%+v %+v", seen, seen.Text)
			}
			if seen.Measures.Brightness < 0.93 || seen.Measures.Brightness > 0.97 {
				t.Errorf("%+v", seen.Measures)
			}
			w := seen.Text.Words[1] // stream
			if w.Text != "stream" || w.Confidence < 0.7 || w.Line != 0 || w.Box.X < 90 || w.Box.X > 115 || w.Box.Y < 30 || w.Box.Y > 50 || w.Box.Width < 90 || w.Box.Width > 120 || w.Box.Height < 18 || w.Box.Height > 40 {
				t.Errorf("%+v", w)
			}
			if seen.Faces != nil || seen.Colors != nil || !slices.Equal(r.Features, []string{"text"}) || !slices.Equal(seen.Text.Languages, []string{"eng", "deu"}) {
				t.Errorf("what was not asked for: %+v", r)
			}
		})
	}
}

// exif is a JPEG file that says how it is to be turned.
func exif(file []byte, orientation byte) []byte {
	tiff := []byte("Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(orientation)) + "\x00\x00\x00\x00\x00\x00")
	segment := append([]byte{0xff, 0xe1, 0, byte(len(tiff) + 2)}, tiff...)
	return slices.Concat(file[:2], segment, file[2:])
}

func TestAFaceIsFound(t *testing.T) {
	t.Parallel()
	photo, err := os.ReadFile("testdata/astronaut.jpg")
	if err != nil {
		t.Fatal(err)
	}
	d := serve(t, engines.Setting{}, "", nil)
	r := d.see("", photo)
	seen := r.Pictures[0]
	if len(seen.Faces) != 1 || !slices.Equal(r.Features, []string{"faces", "colors"}) || seen.Text != nil {
		t.Fatalf("%+v", r)
	}
	if b := seen.Faces[0].Box; b.X+b.Width/2 < 160 || b.X+b.Width/2 > 195 || b.Y+b.Height/2 < 70 || b.Y+b.Height/2 > 110 || b.Width < 50 || b.Width > 110 { // in 400 by 400
		t.Errorf("%+v", b)
	}
	if r := d.see("?features=faces", encoded(t, page(t, "Nobody is here"), "png")); len(r.Pictures[0].Faces) != 0 || r.Pictures[0].Faces == nil {
		t.Errorf("%+v", r)
	}
}

func TestColorsAndMeasures(t *testing.T) {
	t.Parallel()
	d := serve(t, engines.Setting{}, "", nil)
	p := image.NewRGBA(image.Rect(0, 0, 400, 300))
	draw.Draw(p, p.Rect, image.NewUniform(color.RGBA{200, 30, 30, 255}), image.Point{}, draw.Src)
	draw.Draw(p, image.Rect(0, 0, 100, 300), image.NewUniform(color.RGBA{20, 40, 220, 255}), image.Point{}, draw.Src)
	seen := d.see("?features=colors", encoded(t, p, "png")).Pictures[0]
	if len(seen.Colors) != 2 || seen.Colors[0].Hex != "#c81e1e" || seen.Colors[0].Share != 0.75 || seen.Colors[1].Hex != "#1428dc" {
		t.Errorf("%+v", seen.Colors)
	}
	bright := d.see("?features=colors", encoded(t, page(t, ""), "png")).Pictures[0].Measures
	written := d.see("?features=colors", encoded(t, page(t, "Sharp letters"), "png")).Pictures[0].Measures
	if seen.Measures.Brightness < 0.25 || seen.Measures.Brightness > 0.35 || bright.Brightness != 1 || bright.Sharpness != 0 || written.Sharpness < 500 || written.Contrast < 0.05 {
		t.Errorf("%+v %+v %+v", seen.Measures, bright, written)
	}
}

func TestFilmsAreLookedAtWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	d := serve(t, engines.Setting{}, tesseract(t), encoded(t, page(t, "A frame of an asset"), "png"))
	r := d.see("?times=0.5,1.5&features=colors", ffmpegtest.Film(t, "mp4"))
	if len(r.Pictures) != 2 || *r.Pictures[0].Time != 0.5 || *r.Pictures[1].Time != 1.5 || r.Pictures[0].Width != 320 || len(r.Pictures[0].Colors) < 3 {
		t.Errorf("%+v", r)
	}
	if r := d.see("?asset_id=asset_1&times=3", nil); len(r.Pictures) != 1 || *r.Pictures[0].Time != 3 || r.Pictures[0].Text.Text != "A frame of an asset" {
		t.Errorf("%+v", r)
	}
	if w := d.post("?asset_id=asset_2", "", nil); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// huge is a PNG that says it is large.
func huge(t *testing.T) []byte {
	file := encoded(t, image.NewGray(image.Rect(0, 0, 1, 1)), "png")
	binary.BigEndian.PutUint32(file[16:], 19_000)
	binary.BigEndian.PutUint32(file[20:], 19_000)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	d := serve(t, engines.Setting{MaxBytes: 1 << 20}, tesseract(t), nil)
	picture := encoded(t, page(t, "Read me"), "png")
	for name, c := range map[string]struct {
		query, kind string
		body        []byte
		status      int
		says        string
	}{
		"no picture":                    {"", "image/png", []byte("nothing of the kind"), 400, "STORAGE_002"},
		"nothing":                       {"", "", nil, 400, "STORAGE_002"},
		"text":                          {"", "text/html", picture, 400, "STORAGE_002"},
		"a picture that breaks off":     {"", "image/png", picture[:200], 400, "STORAGE_002"},
		"more pixels than are taken":    {"", "image/png", huge(t), 413, "STORAGE_001"},
		"more bytes than are taken":     {"", "image/png", bytes.Repeat(picture, 400), 413, "STORAGE_001"},
		"an unknown feature":            {"?features=smells", "image/png", picture, 400, `"field":"features"`},
		"a feature of models":           {"?features=description", "image/png", picture, 501, "not_implemented"},
		"a language without data":       {"?language=ja", "image/png", picture, 400, `"field":"language"`},
		"a language that is a path":     {"?language=../eng", "image/png", picture, 400, `"field":"language"`},
		"times of a picture":            {"?times=1", "image/png", picture, 400, `"field":"times"`},
		"a film without times":          {"", "video/mp4", ffmpegtest.Film(t, "mp4"), 400, `"field":"times"`},
		"a time beyond the end":         {"?times=1,9", "video/mp4", ffmpegtest.Film(t, "mp4"), 400, `"field":"times"`},
		"no time":                       {"?times=NaN", "video/mp4", nil, 400, `"field":"times"`},
		"more times than are looked at": {"?times=1,1,1,1,1,1,1,1,1,1,1", "video/mp4", nil, 400, `"field":"times"`},
		"a film that is none":           {"?times=1", "video/mp4", []byte("\x00\x00\x00\x10ftypisom nothing else"), 400, "STORAGE_002"},
	} {
		if w := d.post(c.query, c.kind, c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := serve(t, engines.Setting{Use: engines.Off}, tesseract(t), nil).post("", "image/png", picture); w.Code != 501 {
		t.Errorf("off: %d %s", w.Code, w.Body)
	}
}
