package media_test

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/media/transcribe/speech/speechtest"
	"sluice.dev/sluice/media/transcribe/transcript"
)

// withSpeech gives the product the built-in engine, and the account room for films.
func withSpeech(t *testing.T) func(*media.Config) {
	t.Helper()
	return func(c *media.Config) {
		c.FFmpeg, c.Scratch, c.Speech = ffmpegtest.Tool(t).Binary, t.TempDir(), speechtest.Program(t)
		c.Plans = plans.Table{"": {FileBytes: 4 << 20, StorageBytes: 1 << 24}}
	}
}

// spoken is a film in which r is read aloud.
func spoken(t *testing.T, r speechtest.Recording, format string, codecs ...string) []byte {
	t.Helper()
	card := filepath.Join(t.TempDir(), "card.mp4")
	if out, err := exec.Command(ffmpegtest.Tool(t).Binary, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=10", card).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r.Bytes(t, append([]string{"-i", card, "-map", "0:a", "-map", "1:v", "-f", format}, codecs...)...)
}

func TestSpeechOfABodyIsTranscribedInEveryForm(t *testing.T) {
	t.Parallel()
	b, r := setup(t, withSpeech(t)), speechtest.Beckett
	for name, body := range map[string][]byte{
		"wav": r.Bytes(t, "-f", "wav"), "mp3": r.Bytes(t, "-f", "mp3"), "m4a": r.Bytes(t, "-f", "ipod"), "flac": r.Bytes(t, "-f", "flac"),
		"opus": r.Bytes(t, "-c:a", "libopus", "-f", "ogg"), "webm": r.Bytes(t, "-c:a", "libopus", "-f", "webm"),
		"film": spoken(t, r, "mp4", "-c:v", "copy", "-c:a", "aac"),
	} {
		got := b.do("POST", "/v1/transcribe", string(body), "Content-Type", "application/octet-stream").want(200)
		var said transcript.Transcript
		got.into(&said)
		if rate := speechtest.ErrorRate(r.Text, said.Text); rate > 0.2 || said.Language != "en" || said.Engine != speech.Version || said.WordTimes != transcript.Estimated || said.Duration < 9 {
			t.Errorf("%s: %.0f %% wrong: %+v", name, 100*rate, said)
		}
		if n := len(strings.Fields(said.Text)); len(said.Words) != n {
			t.Errorf("%s: times of %d words of %d", name, len(said.Words), n)
		}
	}
}

func TestTranscriptsComeInTheFormThatIsAskedFor(t *testing.T) {
	t.Parallel()
	b, body := setup(t, withSpeech(t)), string(speechtest.Beckett.Bytes(t, "-f", "wav"))
	for _, c := range []struct{ path, accept, kind, begins string }{
		{"/v1/captions", "", "text/vtt; charset=utf-8", "WEBVTT\n\n00:00:0"},
		{"/v1/captions?format=srt", "", "application/x-subrip; charset=utf-8", "1\n00:00:0"},
		{"/v1/transcribe?format=text&language=en", "", "text/plain; charset=utf-8", "Ever tried"},
		{"/v1/transcribe", "text/html;q=0.9, text/vtt", "text/vtt; charset=utf-8", "WEBVTT\n"},
	} {
		got := b.do("POST", c.path, body, "Content-Type", "audio/wav", "Accept", c.accept).want(200)
		if got.header.Get("Content-Type") != c.kind || !strings.HasPrefix(string(got.raw), c.begins) {
			t.Errorf("%s: %s %.60q", c.path, got.header.Get("Content-Type"), got.raw)
		}
		if cues, problem := captions.Parse(string(got.raw)); strings.HasPrefix(c.kind, "text/vtt") && (problem != nil || cues < 2) {
			t.Errorf("%s: %d cues, %+v", c.path, cues, problem)
		}
	}
}

func TestWhatIsNotTranscribed(t *testing.T) {
	t.Parallel()
	b := setup(t, withSpeech(t))
	sound := speechtest.Beckett.Bytes(t, "-t", "1", "-f", "wav")
	for name, c := range map[string]struct {
		path, kind string
		body       []byte
		want       int
		code       string
	}{
		"no sound":            {"/v1/transcribe", "video/mp4", film, 400, "STORAGE_002"},
		"noise":               {"/v1/transcribe", "application/octet-stream", []byte("hello"), 400, "STORAGE_002"},
		"a playlist":          {"/v1/transcribe", "application/octet-stream", []byte("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"), 400, "STORAGE_002"},
		"nothing":             {"/v1/transcribe", "application/octet-stream", nil, 400, "STORAGE_002"},
		"JSON":                {"/v1/captions", "application/json", []byte("{}"), 400, "STORAGE_002"},
		"too large":           {"/v1/transcribe", "audio/wav", make([]byte, 4<<20+1), 413, "STORAGE_001"},
		"an unknown form":     {"/v1/transcribe?format=docx", "audio/wav", sound, 400, "invalid_request"},
		"no language":         {"/v1/transcribe?language=e!", "audio/wav", sound, 400, "invalid_request"},
		"an unknown language": {"/v1/transcribe?language=de", "audio/wav", sound, 400, "invalid_request"},
		"no asset":            {"/v1/transcribe?asset_id=vod_1", "audio/wav", nil, 404, "not_found"},
	} {
		if got := b.do("POST", c.path, string(c.body), "Content-Type", c.kind); got.status != c.want || got.text("error.code") != c.code {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
	long := speechtest.Beckett.Bytes(t, "-af", "aloop=loop=70:size=160000,atrim=duration=601", "-ar", "8000", "-f", "mp3", "-b:a", "8k")
	if got := b.do("POST", "/v1/transcribe", string(long), "Content-Type", "audio/mpeg"); got.status != 413 || got.text("error.code") != "STORAGE_001" {
		t.Errorf("too long: %d %s", got.status, got.raw)
	}
}

func TestCaptionsOfAnAssetAreMadeByAJob(t *testing.T) {
	t.Parallel()
	b := setup(t, withSpeech(t))
	id := b.uploadOf(spoken(t, speechtest.Beckett, "mp4", "-c:v", "copy", "-c:a", "aac"))
	at := "/v1/vod/" + id + "/captions"
	b.do("POST", at, object{"generate": false, "language": "x"}).wantError(400, "invalid_request", "generate", "language")
	made := b.do("POST", at, object{"generate": true}).want(202)
	if made.text("status") != "processing" || made.text("language") != "en" || made.get("url") != nil {
		t.Errorf("%s", made.raw)
	}
	if again := b.do("POST", "/v1/transcribe?asset_id="+id, nil).want(202); again.text("id") != made.text("id") {
		t.Errorf("another one: %s", again.raw)
	}
	stranger := identityheader.Caller{Account: "acct_2", Key: "key_2"}
	b.as(stranger, "POST", at, object{"generate": true}).wantError(404, "not_found")
	b.as(stranger, "GET", at+"/en", nil).wantError(404, "not_found")
	b.do("GET", at+"/en", nil).wantError(404, "not_found")
	b.work(1)
	list := b.do("GET", at, nil).want(200)
	if list.text("data.0.status") != "ready" || list.get("data.0.progress") != 100.0 || list.text("data.0.engine") != speech.Version {
		t.Fatalf("%s", list.raw)
	}
	if text := b.do("POST", "/v1/transcribe?format=text&asset_id="+id, nil).want(200); speechtest.ErrorRate(speechtest.Beckett.Text, string(text.raw)) > 0.2 {
		t.Errorf("%s", text.raw)
	}
	url := list.text("data.0.url")
	for _, got := range []answer{b.do("GET", at+"/en", nil).want(200), b.fetch(url).want(200)} {
		if cues, problem := captions.Parse(string(got.raw)); problem != nil || cues < 2 {
			t.Errorf("%v %s", problem, got.raw)
		}
	}
	b.fetch(strings.Replace(url, "token=", "token=x", 1)).wantError(401, "invalid_token")
	events := b.events()
	last := events[len(events)-1]
	if last.Type != "captions.generated" || last.Data["vod_id"] != id || last.Data["language"] != "en" {
		t.Errorf("%+v", last)
	}
	b.fetch(last.Data["url"].(string)).want(200)
	b.do("DELETE", at+"/en", nil).want(204)
	b.do("GET", at+"/en", nil).wantError(404, "not_found")
}

func TestAJobThatCannotSucceedSaysWhy(t *testing.T) {
	t.Parallel()
	b := setup(t, withSpeech(t))
	id := b.uploadOf(ffmpegtest.Film(t, "mp4"))
	b.do("POST", "/v1/vod/"+id+"/captions", object{"language": "de"}).want(202)
	b.work(1)
	failed := b.do("GET", "/v1/vod/"+id+"/captions", nil).want(200)
	if failed.text("data.0.status") != "failed" || failed.text("data.0.error.code") != "invalid_request" {
		t.Errorf("%s", failed.raw)
	}
	if again := b.do("POST", "/v1/vod/"+id+"/captions", object{"language": "de"}).want(202); again.text("status") != "processing" {
		t.Errorf("%s", again.raw)
	}
}

// A transcript whose worker was killed in each attempt has no job any more: it fails, and
// gives its place in the queue back.
func TestATranscriptThatNobodyWorksOnFails(t *testing.T) {
	t.Parallel()
	b := setup(t, withSpeech(t), func(c *media.Config) { c.OwnerLimit = 1 })
	at := "/v1/vod/" + b.uploadOf(ffmpegtest.Film(t, "mp4")) + "/captions"
	b.do("POST", at, object{"language": "en"}).want(202)
	b.do("POST", at, object{"language": "en-gb"}).wantError(503, "TRANSCODE_001")
	media.NewUpkeep(b.config).Round(t.Context())
	if got := b.do("GET", at, nil).want(200); got.text("data.0.status") != "processing" {
		t.Errorf("%s", got.raw)
	}
	if _, err := b.pool.Exec(t.Context(), `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE kind = 'media_transcribe'`); err != nil {
		t.Fatal(err)
	}
	media.NewUpkeep(b.config).Round(t.Context())
	if got := b.do("GET", at, nil).want(200); got.text("data.0.status") != "failed" || got.text("data.0.error.code") != "internal" {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", at, object{"language": "en"}).want(202)
}

// openAI is an engine at an address that checks what it is sent.
func openAI(t *testing.T, answer string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			return
		}
		if r.Header.Get("Authorization") != "Bearer secret" || r.Method != "POST" || r.URL.Path != "/v1/audio/transcriptions" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		in, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		var got []string
		for {
			part, err := in.NextPart()
			if err != nil {
				break
			}
			got = append(got, part.FormName()+"="+value(t, part))
		}
		want := []string{"model=whisper-large", "response_format=verbose_json", "timestamp_granularities[]=segment", "timestamp_granularities[]=word", "language=pt", "file=sound.wav audio/wav RIFF"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func value(t *testing.T, p *multipart.Part) string {
	t.Helper()
	b, err := io.ReadAll(p)
	if err != nil {
		t.Error(err)
	}
	if p.FileName() != "" {
		return p.FileName() + " " + p.Header.Get("Content-Type") + " " + string(b[:4])
	}
	return string(b)
}

func TestAnEngineAtAnAddress(t *testing.T) {
	t.Parallel()
	at := func(answer string) func(*media.Config) {
		url := openAI(t, answer)
		return func(c *media.Config) {
			c.Engines = func(context.Context) engines.Settings {
				return engines.Settings{engines.Transcribe: {Use: engines.URL, URL: url, KeyFrom: "ENGINE_KEY", Model: "whisper-large"}}
			}
			c.EngineKey = func(name string) (string, bool) { return "secret", name == "ENGINE_KEY" }
		}
	}
	sound := string(speechtest.Beckett.Bytes(t, "-f", "wav"))
	for name, c := range map[string]struct{ answer, words, times string }{
		"all":       {`{"task": "transcribe", "language": "portuguese", "duration": 9.9, "text": "Olá mundo", "segments": [{"id": 0, "start": 0.5, "end": 2, "text": " Olá mundo"}], "words": [{"word": "Olá", "start": 0.5, "end": 1}, {"word": "mundo", "start": 1.2, "end": 2}]}`, "Olá 0.5 mundo 1.2", "measured"},
		"no words":  {`{"text": "Olá mundo", "segments": [{"start": 0.2, "end": 2, "text": "Olá mundo"}]}`, "Olá mundo", "estimated"},
		"only text": {`{"text": "Olá mundo"}`, "Olá mundo", "estimated"},
	} {
		b := setup(t, withSpeech(t), at(c.answer))
		got := b.do("POST", "/v1/transcribe?language=pt-BR", sound, "Content-Type", "audio/wav").want(200)
		var said transcript.Transcript
		got.into(&said)
		if said.Text != "Olá mundo" || said.WordTimes != c.times || said.Language != "pt-br" || said.Engine != "whisper-large" || len(said.Words) != 2 {
			t.Errorf("%s: %s", name, got.raw)
		}
		if health := b.do("GET", "/health", nil); health.text("engines.transcribe.use") != "url" || health.text("engines.transcribe.version") != "whisper-large" || health.text("surfaces.captions") != "available" {
			t.Errorf("%s", health.raw)
		}
	}
	b := setup(t, withSpeech(t), at(`no JSON`))
	b.do("POST", "/v1/transcribe?language=pt", sound, "Content-Type", "audio/wav").wantError(502, "bad_gateway")
}
