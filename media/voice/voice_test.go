package voice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/voice"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

// installed is the program that `make test` names.
func installed(t *testing.T) voice.Builtin {
	t.Helper()
	b := voice.Builtin{Program: os.Getenv("SLUICE_VOICE")}
	if !b.Here() {
		t.Fatal("there is no voice: run `make test`, which fetches one")
	}
	return b
}

// desk is a product with a caller in front of it.
type desk struct {
	t *testing.T
	http.Handler
}

func serve(t *testing.T, tool ffmpeg.Tool, s engines.Setting, builtin func() (voice.Speaker, bool)) desk {
	t.Helper()
	v := voice.Service{FFmpeg: tool, Engine: &engines.Product[voice.Speaker]{Name: engines.Voice, What: "speech synthesis", Builtin: builtin,
		Settings: func(context.Context) engines.Settings { return engines.Settings{engines.Voice: s} },
		Remote:   func(a *remote.API) voice.Speaker { return voice.Remote{API: a} }}}
	a := httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}
	r := chi.NewRouter()
	r.Use(identity.Verifier{Secrets: func() [][]byte { return [][]byte{[]byte("secret")} }}.Require(a))
	v.Routes(r, a)
	return desk{t, r}
}

func (d desk) do(ctx context.Context, method, path, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set(identityheader.Header, identityheader.Sign([]byte("secret"), identityheader.Caller{Account: "acct_1"}, time.Now().Unix()))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func (d desk) say(path, kind, body string) *httptest.ResponseRecorder {
	d.t.Helper()
	return d.do(d.t.Context(), http.MethodPost, path, kind, body)
}

// heard is what ffmpeg hears in a sound.
type heard struct {
	codec   string
	seconds float64
	mean    float64 // dB
}

var (
	codecLine = regexp.MustCompile(`Audio: (\w+)`)
	timeLine  = regexp.MustCompile(`time=(\d+):(\d+):([\d.]+)`)
	meanLine  = regexp.MustCompile(`mean_volume: (-?[\d.]+) dB`)
)

func hear(t *testing.T, tool ffmpeg.Tool, sound []byte) (h heard) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sound")
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool.Binary, "-nostdin", "-i", name, "-af", "volumedetect", "-f", "null", "-").CombinedOutput()
	codec, mean, times := codecLine.FindSubmatch(out), meanLine.FindSubmatch(out), timeLine.FindAllSubmatch(out, -1)
	if err != nil || codec == nil || mean == nil || times == nil {
		t.Fatalf("%v: %s", err, out)
	}
	last := times[len(times)-1]
	minutes, _ := strconv.ParseFloat(string(last[2]), 64)
	seconds, _ := strconv.ParseFloat(string(last[3]), 64)
	h.mean, _ = strconv.ParseFloat(string(mean[1]), 64)
	h.codec, h.seconds = string(codec[1]), 60*minutes+seconds
	return h
}

func builtin(t *testing.T) func() (voice.Speaker, bool) {
	b := installed(t)
	return func() (voice.Speaker, bool) { return b, true }
}

const sentence = "The stream starts at seven o'clock tonight, and everybody is invited."

func TestWhatIsSpokenCanBeHeard(t *testing.T) {
	t.Parallel()
	tool := ffmpegtest.Tool(t)
	d := serve(t, tool, engines.Setting{}, builtin(t))
	for name, c := range map[string]struct {
		path, kind, body, answer, codec string
		least, most                     float64 // seconds
	}{
		"JSON":                   {"", "application/json", `{"text": "` + sentence + `"}`, "audio/wav", "pcm_s16le", 2.5, 7},
		"fast":                   {"", "application/json", `{"text": "` + sentence + `", "speed": 2.5, "voice": "en_US-joe-medium", "language": "en-us"}`, "audio/wav", "pcm_s16le", 0.8, 2.5},
		"bytes, as mp3":          {"?format=mp3&language=en", "application/octet-stream", sentence, "audio/mpeg", "mp3", 2.5, 7},
		"text, as opus, slow":    {"?format=opus&speed=0.5", "text/plain; charset=utf-8", sentence, "audio/ogg", "opus", 5, 14},
		"what looks like a flag": {"", "text/plain", "--debug=true --help", "audio/wav", "pcm_s16le", 0.5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := d.say("/v1/voice"+c.path, c.kind, c.body)
			if w.Code != 200 || w.Header().Get("Content-Type") != c.answer {
				t.Fatalf("%d %s: %.300s", w.Code, w.Header(), w.Body)
			}
			if h := hear(t, tool, w.Body.Bytes()); h.codec != c.codec || h.seconds < c.least || h.seconds > c.most || h.mean < -40 || h.mean > -8 {
				t.Errorf("%+v", h)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	d := serve(t, ffmpeg.Tool{Dir: t.TempDir()}, engines.Setting{}, builtin(t))
	for name, c := range map[string]struct {
		path, kind, body string
		status           int
		field            string
	}{
		"no text":             {"", "application/json", `{}`, 400, "text"},
		"only spaces":         {"", "text/plain", " \n ", 400, "text"},
		"too long":            {"", "text/plain", strings.Repeat("a", voice.MaxText+1), 400, "text"},
		"far too long":        {"", "text/plain", strings.Repeat("a", 70_000), 413, ""},
		"no text at all":      {"", "text/plain", "\x00\x01", 400, "text"},
		"nothing to say":      {"", "text/plain", "…", 400, "text"},
		"an unknown field":    {"", "application/json", `{"text": "a", "pitch": 2}`, 400, "pitch"},
		"an unknown voice":    {"?voice=nobody", "text/plain", "a", 400, "voice"},
		"another language":    {"?language=ja", "text/plain", "a", 400, "language"},
		"its other language":  {"?language=ja&voice=en_US-joe-medium", "text/plain", "a", 400, "language"},
		"no language":         {"?language=../etc", "text/plain", "a", 400, "language"},
		"no speed":            {"?speed=fast", "text/plain", "a", 400, "speed"},
		"no number":           {"?speed=NaN", "text/plain", "a", 400, "speed"},
		"a format of nobody":  {"?format=flac", "text/plain", "a", 400, "format"},
		"a film":              {"", "video/mp4", "a", 415, ""},
		"mp3, without ffmpeg": {"?format=mp3", "text/plain", "a", 501, ""},
	} {
		w := d.say("/v1/voice"+c.path, c.kind, c.body)
		if w.Code != c.status || c.field != "" && !strings.Contains(w.Body.String(), `"field":"`+c.field+`"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	off := serve(t, ffmpeg.Tool{Dir: t.TempDir()}, engines.Setting{Use: engines.Off}, builtin(t))
	for _, w := range []*httptest.ResponseRecorder{off.say("/v1/voice", "text/plain", "a"), off.do(t.Context(), "GET", "/v1/voice/voices", "", "")} {
		if w.Code != 501 {
			t.Errorf("off: %d %s", w.Code, w.Body)
		}
	}
}

func TestVoicesAreListed(t *testing.T) {
	t.Parallel()
	b := installed(t)
	further := t.TempDir()
	for name, text := range map[string]string{
		"two.onnx": "", "tokens.txt": "", "two.onnx.json": `{"audio": {"sample_rate": 16000, "quality": "low"}, "language": {"code": "de_DE", "name_english": "German"}, "speaker_id_map": {"b": 1, "a": 0}}`,
	} {
		if err := os.MkdirAll(filepath.Join(further, "two"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(further, "two", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Voices = further
	d := serve(t, ffmpegtest.Tool(t), engines.Setting{}, func() (voice.Speaker, bool) { return b, true })
	var o voice.Offer
	w := d.do(t.Context(), "GET", "/v1/voice/voices", "", "")
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil || w.Code != 200 {
		t.Fatal(w.Code, err)
	}
	var ids []string
	for _, v := range o.Voices {
		ids = append(ids, v.ID+" "+v.Language)
	}
	if got := strings.Join(ids, ", "); got != "en_US-joe-medium en-US, two:a de-DE, two:b de-DE" || !o.Voices[0].Default || o.Voices[1].Default ||
		o.Open || strings.Join(o.Languages, " ") != "en-US de-DE" || o.Voices[1].SampleRate != 16000 {
		t.Errorf("%s: %s", got, w.Body)
	}
	if version, err := b.Check(t.Context()); err != nil || !strings.HasPrefix(version, "en_US-joe-medium by sherpa-onnx 1.") {
		t.Error(version, err)
	}
	if err := os.Remove(filepath.Join(further, "two", "tokens.txt")); err != nil {
		t.Fatal(err)
	}
	if b.Here() {
		t.Error("a voice without tokens counts")
	}
}

// signalled says when it begins to speak.
type signalled struct {
	voice.Builtin
	began chan struct{}
}

func (s signalled) Speak(ctx context.Context, o voice.Order, to ffmpeg.Folder) error {
	select {
	case s.began <- struct{}{}:
	default:
	}
	return s.Builtin.Speak(ctx, o, to)
}

// A caller who leaves takes the process with him: the turn is free for the next.
func TestACallerWhoLeavesStopsTheWork(t *testing.T) {
	t.Parallel()
	speaker := signalled{installed(t), make(chan struct{}, 1)}
	d := serve(t, ffmpegtest.Tool(t), engines.Setting{Concurrency: 1}, func() (voice.Speaker, bool) { return speaker, true })
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() { ended <- d.do(ctx, "POST", "/v1/voice", "text/plain", strings.Repeat(sentence+" ", 60)).Code }()
	<-speaker.began
	leave()
	if code := <-ended; code < 400 {
		t.Errorf("%d for a caller who left", code)
	}
	if w := d.say("/v1/voice", "text/plain", "Next."); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAnAddressSpeaks(t *testing.T) {
	t.Parallel()
	ogg, err := exec.Command(ffmpegtest.Tool(t).Binary, "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", "libopus", "-f", "ogg", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	var asked map[string]any
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/audio/speech" {
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(ogg)
	}))
	defer api.Close()
	d := serve(t, ffmpeg.Tool{Dir: t.TempDir()}, engines.Setting{URL: api.URL, Model: "large"}, func() (voice.Speaker, bool) { return nil, false })
	w := d.say("/v1/voice", "application/json", `{"text": "Hello", "voice": "nova", "format": "opus", "speed": 1.5}`)
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), ogg) || asked["model"] != "large" || asked["input"] != "Hello" || asked["voice"] != "nova" || asked["response_format"] != "opus" || asked["speed"] != 1.5 {
		t.Errorf("%d %v", w.Code, asked)
	}
	if w := d.say("/v1/voice?format=mp3", "text/plain", "Hello"); w.Code != 502 { // which gets Opus all the same
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
	if w := d.do(t.Context(), "GET", "/v1/voice/voices", "", ""); !strings.Contains(w.Body.String(), `"open":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
