package ffmpeg_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	_ "image/jpeg" // of stills
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	if len(os.Args) > 1 && os.Args[1] == "-nostdin" {
		_ = exec.Command("/proc/self/exe", os.Args[1:]...).Start()
		select {}
	}
	os.Exit(m.Run())
}

// convert runs recipe on film and returns the result.
func convert(t *testing.T, tool ffmpeg.Tool, film []byte, r ffmpeg.Recipe, most int64) ([]byte, error) {
	t.Helper()
	f, err := tool.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(f.Input(), film, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tool.Run(t.Context(), f, r, most, time.Minute); err != nil {
		return nil, err
	}
	out, err := os.ReadFile(f.Output())
	if err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func TestRecipesMakeWhatTheySay(t *testing.T) {
	t.Parallel()
	tool, film := ffmpegtest.Tool(t), ffmpegtest.Film(t, "mp4")
	small, _ := ffmpeg.ProfileOf("240p")
	made, err := convert(t, tool, film, ffmpeg.Transcode(small), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := mp4.Parse(bytes.NewReader(made), int64(len(made))); err != nil || info.Height != 240 || info.VideoCodec != "avc1" || info.AudioCodec != "mp4a" {
		t.Errorf("%+v, %v", info, err)
	}
	for format, mark := range map[string]string{"mp4": "ftyp", "fmp4": "moof", "mov": "qt  ", "mkv": "matroska", "ts": "G@"} {
		if got, err := convert(t, tool, film, ffmpeg.Mux(format), 1<<20); err != nil || !bytes.Contains(got, []byte(mark)) {
			t.Errorf("%s: %d bytes without %q, %v", format, len(got), mark, err)
		}
	}
	for _, format := range ffmpeg.Images {
		got, err := convert(t, tool, film, ffmpeg.Still(1, 160, format), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		picture, name, err := image.DecodeConfig(bytes.NewReader(got))
		if err != nil || picture.Width != 160 || picture.Height != 120 || !strings.HasPrefix(name, format[:1]) {
			t.Errorf("%s: %s %+v, %v", format, name, picture, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	tool, film := ffmpegtest.Tool(t), ffmpegtest.Film(t, "mp4")
	secret := filepath.Join(t.TempDir(), "secret.ts")
	if err := os.WriteFile(secret, ffmpegtest.Film(t, "mpegts"), 0o600); err != nil {
		t.Fatal(err)
	}
	small, _ := ffmpeg.ProfileOf("240p")
	for name, c := range map[string]struct {
		film []byte
		most int64
		code decision.Code
	}{
		"no film":                         {[]byte("nothing of the kind"), 1 << 20, decision.Storage002},
		"a film that breaks off":          {film[:200], 1 << 20, decision.Storage002},
		"a playlist of a local file":      {[]byte("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n" + secret + "\n#EXT-X-ENDLIST\n"), 1 << 20, decision.Storage002},
		"a list of local files":           {[]byte("ffconcat version 1.0\nfile '" + secret + "'\n"), 1 << 20, decision.Storage002},
		"a result larger than is allowed": {film, 4000, decision.Storage001},
	} {
		if _, err := convert(t, tool, c.film, ffmpeg.Transcode(small), c.most); apierror.Code(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if _, err := convert(t, ffmpeg.Tool{Dir: t.TempDir()}, film, ffmpeg.Mux("ts"), 1); apierror.Code(err) != decision.NotImplemented {
		t.Errorf("without an ffmpeg: %v", err)
	}
	if _, err := convert(t, ffmpeg.Tool{Binary: "/no/such/file", Dir: t.TempDir()}, film, ffmpeg.Mux("ts"), 1); apierror.Code(err) != decision.Internal {
		t.Errorf("an ffmpeg that cannot be run: %v", err)
	}
}

// A program that never ends, and neither does its child: both are gone when the
// time is over, and nothing of the folder is left.
func TestTimeOverEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	self, err := os.Executable() // which does so when it is called as ffmpeg is
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tool := ffmpeg.Tool{Binary: self, Dir: dir}
	f, err := tool.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	err = tool.Run(t.Context(), f, ffmpeg.Mux("ts"), 1, 50*time.Millisecond)
	if apierror.Code(err) != decision.GatewayTimeout {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tool.Run(ctx, f, ffmpeg.Mux("ts"), 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sluice-*")); len(left) > 0 {
		t.Error(left)
	}
}
