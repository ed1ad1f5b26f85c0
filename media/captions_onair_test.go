package media_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/transcribe/speech/speechtest"
	"sluice.dev/sluice/media/transcribe/transcript"
)

// spokenFor is how long the recording is with the pause behind it, in seconds.
const spokenFor = 12.0

// talk publishes a film in which a recording is read aloud, again and again.
func (a *air) talk(stream answer) (stop func()) {
	a.t.Helper()
	loop := filepath.Join(a.t.TempDir(), "loop.wav")
	if err := os.WriteFile(loop, speechtest.Beckett.Bytes(a.t, "-af", fmt.Sprintf("apad=whole_dur=%v", spokenFor), "-ar", "48000", "-f", "wav"), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return start(a.t, a.tool, "-nostdin", "-hide_banner", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i", loop, "-f", "lavfi", "-re", "-i", "testsrc2=size=160x90:rate=10",
		"-map", "1:v", "-map", "0:a", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "10", "-c:a", "aac", "-f", "flv",
		a.rtmp+"/live/"+stream.text("ingest.rtmp.stream_key"))
}

var (
	subtitles = regexp.MustCompile(`#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="([^"]*)",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,URI="([^"]*)"`)
	pieceLine = regexp.MustCompile(`(?m)^#EXT-X-PROGRAM-DATE-TIME:(\S+)\n#EXTINF:([\d.]+),\n(captions_\S+)$`)
	cueBlock  = regexp.MustCompile(`(?m)^(\d+-\d+)\n(\d\d):(\d\d):(\d\d\.\d+) --> \S+\n((?:.+\n)+)`)
)

// watcher is a player that shows the captions of a stream on air.
type watcher struct {
	*air
	at    string // address of the stream, with a slash at its end
	query string
	asked map[string]bool
	ids   map[string]float64 // where each cue begins
	text  string
}

// look plays what is new, and returns all that was shown.
func (w *watcher) look() string {
	w.t.Helper()
	master := w.fetch(w.at + "index.m3u8" + w.query)
	m := subtitles.FindStringSubmatch(string(master.raw))
	if master.status != 200 || m == nil {
		return w.text
	}
	list := w.fetch(w.at + m[2])
	for _, p := range pieceLine.FindAllStringSubmatch(string(list.raw), -1) {
		if w.asked[p[3]] {
			continue
		}
		w.asked[p[3]] = true
		piece := w.fetch(w.at + p[3]).want(200)
		if _, problem := captions.Parse(strings.Replace(string(piece.raw), "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n", "", 1)); problem != nil {
			w.t.Errorf("%+v: %s", problem, piece.raw)
		}
		for _, c := range cueBlock.FindAllStringSubmatch(string(piece.raw), -1) {
			hours, _ := strconv.ParseFloat(c[2], 64)
			minutes, _ := strconv.ParseFloat(c[3], 64)
			rest, _ := strconv.ParseFloat(c[4], 64)
			at := hours*3600 + minutes*60 + rest
			if was, ok := w.ids[c[1]]; ok {
				if math.Abs(was-at) > 0.6 {
					w.t.Errorf("%s moves from %v to %v", c[1], was, at)
				}
				continue
			}
			w.ids[c[1]] = at
			w.text += " " + strings.Join(strings.Fields(c[5]), " ")
		}
	}
	return w.text
}

func (a *air) watch(hls string) *watcher {
	at, query, _ := strings.Cut(strings.TrimSuffix(hls, "index.m3u8"), "index.m3u8")
	return &watcher{air: a, at: at, query: query, asked: map[string]bool{}, ids: map[string]float64{}}
}

// withRoom gives the account room for recordings, and the engine for speech.
func withRoom(t *testing.T) func(*media.Config) {
	speech := withSpeech(t)
	return func(c *media.Config) {
		dir := c.Scratch
		speech(c)
		if dir != "" {
			c.Scratch = dir
		}
		c.Plans = plans.Table{"": {ConcurrentStreams: 2, BitrateKbps: 6000, FileBytes: 32 << 20, StorageBytes: 64 << 20}}
	}
}

// A stream on air shows what is said in it, and its recording keeps that with the times at
// which it was said.
func TestCaptionsOfAStreamOnAir(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil, withRoom(t))
	show := a.do("POST", "/v1/streams", object{"title": "Show", "recording": object{"enabled": true}}).want(201)
	id := show.text("id")
	at := "/v1/streams/" + id + "/captions"
	a.do("POST", at, object{"language": "de", "generate": true}).wantError(400, "invalid_request", "language")
	made := a.do("POST", at, object{"language": "en", "label": `Plain "English"`, "generate": true}).want(201)
	if made.text("generation.state") != "waiting" || made.text("status") != "empty" {
		t.Errorf("%s", made.raw)
	}
	stop := a.talk(show)
	w := a.watch(show.text("playback.hls_url"))
	await(t, func() bool { return heardOf(w.look()) >= 2 })
	track := a.do("GET", at, nil).want(200)
	t.Logf("shown %v ms after the end of speech, in the median: %s", track.get("data.0.generation.late_ms"), w.text)
	if track.text("data.0.generation.state") != "listening" {
		t.Errorf("%s", track.raw)
	}
	stop()
	recording := ""
	await(t, func() bool {
		got := a.do("GET", "/v1/recordings?stream_id="+id+"&status=ready", nil).want(200)
		if got.get("pagination.total") != 0.0 {
			recording = got.text("data.0.id")
		}
		return recording != ""
	})
	await(t, func() bool {
		return strings.Contains(string(a.do("GET", "/v1/recordings/"+recording+"/captions", nil).want(200).raw), `"status":"ready"`)
	})
	a.keptInTime(recording)
	if kept := a.do("GET", at, nil).want(200); kept.text("data.0.status") != "ready" || kept.get("data.0.cues") == 0.0 || kept.get("data.0.generation.late_ms") != nil {
		t.Errorf("%s", kept.raw)
	}
	told := 0
	for _, e := range a.events() {
		if e.Type == "captions.generated" {
			told++
			if e.Data["vod_id"] != recording || e.Data["language"] != "en" || e.StreamID != id {
				t.Errorf("%+v", e)
			}
			a.fetch(e.Data["url"].(string)).want(200)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// once are words that are said once in the recording.
var once = []string{"tried", "failed", "matter", "better"}

// heardOf is how many of them a text has.
func heardOf(text string) (n int) {
	for _, word := range once {
		if strings.Contains(strings.ToLower(text), word) {
			n++
		}
	}
	return n
}

// keptInTime compares when words are said in a recording by the captions that were made on
// air and by those that are made of its file.
func (a *air) keptInTime(recording string) {
	a.t.Helper()
	var file, kept transcript.Transcript
	film := a.fetch(a.do("GET", "/v1/recordings/"+recording+"/downloads", nil).want(200).text("data.0.url")).want(200)
	a.do("POST", "/v1/transcribe", string(film.raw), "Content-Type", "video/mp4").want(200).into(&file)
	a.do("GET", "/v1/recordings/"+recording+"/captions/en?format=json", nil).want(200).into(&kept)
	found := 0
	for _, w := range kept.Words {
		word, least := plainWord(w), math.Inf(1)
		for _, f := range file.Words {
			// The recording is said again and again; who listens to the film may mishear a word in one of them.
			if off := math.Remainder(w.Start-f.Start, spokenFor); slices.Contains(once, word) && plainWord(f) == word && math.Abs(off) < math.Abs(least) {
				least = off
			}
		}
		if math.IsInf(least, 1) {
			continue
		}
		found++
		if a.t.Logf("%s is %.2f s off", word, least); math.Abs(least) > 1 {
			a.t.Errorf("%s is said at %.2f, which is %.2f s off", word, w.Start, least)
		}
	}
	if found == 0 {
		a.t.Errorf("%+v", kept)
	}
}

func plainWord(w transcript.Word) string { return strings.ToLower(strings.Trim(w.Word, ".,")) }

// Captions stop where their owner holds them and with the stream, and go on when the
// engine was killed.
func TestCaptionsAreHeldAndGoOn(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil, withRoom(t))
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	at := "/v1/streams/" + show.text("id") + "/captions"
	a.do("POST", at, object{"language": "en", "generate": true}).want(201)
	state := func(want string) {
		t.Helper()
		await(t, func() bool { return a.do("GET", at, nil).want(200).text("data.0.generation.state") == want })
	}
	a.talk(show)
	state("listening")
	if held := a.do("PUT", at+"/en", object{"generate": false}).want(200); held.text("generation.state") != "held" {
		t.Errorf("%s", held.raw)
	}
	if master := a.fetch(show.text("playback.hls_url")); strings.Contains(string(master.raw), "SUBTITLES") {
		t.Errorf("%s", master.raw)
	}
	a.do("PUT", at+"/en", object{"generate": true}).want(200)
	state("listening")
	await(t, func() bool { return a.do("GET", at, nil).want(200).get("data.0.generation.late_ms") != nil })
	a.killEngine()
	state("waiting")
	await(t, func() bool { return a.do("GET", at, nil).want(200).text("data.0.status") == "ready" }) // nothing was recorded
	a.talk(show)
	w := a.watch(show.text("playback.hls_url"))
	await(t, func() bool { return heardOf(w.look()) > 0 })
	put := a.do("PUT", at+"/en", object{"content": cues}).want(200)
	if put.get("generation") != nil || put.text("status") != "ready" {
		t.Errorf("%s", put.raw)
	}
	a.do("DELETE", at+"/en", nil).want(204)
}

// killEngine kills the engine's process, which is started again.
func (a *air) killEngine() {
	a.t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		a.t.Fatal(err)
	}
	for _, name := range found {
		line, _ := os.ReadFile(name) // it may have ended
		if strings.Contains(string(line), a.dir+"/mediamtx.yml") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGKILL)
			}
			if err != nil {
				a.t.Fatal(err)
			}
			return
		}
	}
	a.t.Fatal("there is no engine")
}
