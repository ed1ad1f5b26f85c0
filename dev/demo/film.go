package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// words are what is spoken in the film, and looked for in its captions.
const words = "The stream starts in the evening. Everybody is invited to watch it, and to listen."

// long is how long an engine may take for a piece of work on a machine that is busy.
const long = 3 * time.Minute

// step is one of a film: what is done, and what was seen of it.
type step struct {
	name string
	take func(context.Context) (saw string, err error)
}

// film is what becomes of a broadcast.
type film struct {
	*tour
	dir             string // for sounds that are made
	publisher       *publisher
	began           time.Time
	spoken          time.Duration
	recording, clip asset
}

// asset is what a film needs of a recording, a clip or a video.
type asset struct {
	ID       string  `json:"id"`
	Status   string  `json:"status"`
	Duration float64 `json:"duration"`
	Size     string  `json:"resolution"`
	URL      string  `json:"playback_url"`
	DASH     string  `json:"dash_url"`
	Error    struct{ Message string }
}

// RunAll makes a film with all that the media product has: it publishes a tone and speech,
// plays them by HLS, DASH and WebRTC, and has the recording captioned, clipped and edited.
// It prints what it saw of each step, and fails at the first that does not show what it
// promises. The stream and what was made of it stay.
func RunAll(ctx context.Context, c Config) (err error) {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: long}
	}
	f := &film{tour: &tour{Config: c}}
	if f.FFmpeg == "" {
		return errNoFFmpeg
	}
	if f.dir, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(f.dir) }()
	defer f.leave()
	for i, s := range f.steps() {
		began := time.Now()
		saw, err := s.take(ctx)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.name, err)
		}
		f.say("%2d. %-11s %s  (%.1f s)", i+1, s.name, saw, time.Since(began).Seconds())
	}
	return nil
}

// steps are those of the film, in their order.
func (f *film) steps() []step {
	return []step{
		{"Engines", f.engines},
		{"Voice", f.voice},
		{"Publish", f.publish},
		{"HLS", func(ctx context.Context) (string, error) { return f.see(ctx, f.stream.Playback.HLS, 3) }},
		{"DASH", func(ctx context.Context) (string, error) { return f.see(ctx, f.stream.Playback.DASH, 3) }},
		{"WebRTC", f.webrtc},
		{"Subtitles", f.subtitles},
		{"Recording", f.stop},
		{"Captions", func(ctx context.Context) (string, error) { return f.captions(ctx, "/v1/recordings/"+f.recording.ID) }},
		{"Clip", f.cut},
		{"Edit", f.edit},
	}
}

// engines waits until everything is there that the film needs: engines come behind a stack
// that is ready.
func (f *film) engines(ctx context.Context) (saw string, err error) {
	var registry struct {
		Products []struct {
			Name, State, Needs string
			Engine             struct{ Version string }
		}
	}
	err = until(ctx, long, func() error {
		if err := f.call(ctx, http.MethodGet, "/.well-known/platform-products.json", nil, &registry); err != nil {
			return err
		}
		saw = ""
		left := map[string]bool{"srt": true, "hls": true, "dash": true, "webrtc": true, "voice": true, "captions": true, "clips": true, "editor": true}
		for _, p := range registry.Products {
			if left[p.Name] && p.State != "available" {
				return fmt.Errorf("%s needs %s", p.Name, p.Needs)
			}
			if left[p.Name] && p.Engine.Version != "" {
				saw += ", " + p.Name + " by " + p.Engine.Version
			}
			delete(left, p.Name)
		}
		for name := range left {
			return fmt.Errorf("the registry has no %s", name)
		}
		return nil
	})
	return "all are there" + saw, err
}

// voice has the words spoken, and puts a tone before them.
func (f *film) voice(ctx context.Context) (string, error) {
	sound, err := f.ask(ctx, http.MethodPost, "/v1/voice", map[string]string{"text": words})
	if err != nil {
		return "", err
	}
	if len(sound) < 44 || string(sound[:4]) != "RIFF" {
		return "", errors.New("what was spoken is no WAV")
	}
	f.spoken = time.Duration(float64(len(sound)-44) / float64(binary.LittleEndian.Uint32(sound[28:])) * float64(time.Second))
	if err := os.WriteFile(f.file("speech.wav"), sound, 0o600); err != nil {
		return "", err
	}
	_, err = f.ffmpeg(ctx, "-f", "lavfi", "-i", "sine=frequency=440:duration=2", "-i", f.file("speech.wav"),
		"-filter_complex", "[0]aresample=48000[t];[1]aresample=48000,apad=pad_dur=2[s];[t][s]concat=n=2:v=0:a=1", "-ac", "1", f.file("sound.wav"))
	return fmt.Sprintf("%.1f s of sound say: %s", f.spoken.Seconds(), words), err
}

func (f *film) file(name string) string { return filepath.Join(f.dir, name) }

// publish makes a stream and sends to it. Opus is what players of HLS and of WebRTC both
// take; of the ways to send it, SRT is one that every ffmpeg has.
func (f *film) publish(ctx context.Context) (string, error) {
	body := map[string]any{"title": "Sluice film", "protocol": "srt", "recording": map[string]any{"enabled": true}, "metadata": map[string]string{"made_by": "sluice demo --all"}}
	if err := f.call(ctx, http.MethodPost, "/v1/streams", body, &f.stream); err != nil {
		return "", err
	}
	if !f.stream.Ingest.Available {
		return "", errNoEngine
	}
	args := "-f lavfi -i testsrc2=size=640x360:rate=25 -re -stream_loop -1 -i SOUND -map 0:v -map 1:a " + encoded + " -c:a libopus -b:a 64k -f mpegts"
	to := f.stream.Ingest.SRT.URL + "?pkt_size=1316&streamid=" + f.stream.Ingest.SRT.Key
	all := strings.Fields(args)
	all[slices.Index(all, "SOUND")] = f.file("sound.wav")
	var err error
	if f.publisher, err = f.send(append(all, to)...); err != nil {
		return "", err
	}
	f.began = time.Now()
	err = until(ctx, patience, func() error {
		var now struct{ Status string }
		if err := f.call(ctx, http.MethodGet, "/v1/streams/"+f.stream.ID, nil, &now); err != nil {
			return err
		}
		select {
		case <-f.publisher.gone:
			return fmt.Errorf("ffmpeg ended: %s", f.publisher.said.String())
		default:
		}
		if now.Status != "live" {
			return fmt.Errorf("the stream is %s", now.Status)
		}
		return nil
	})
	return fmt.Sprintf("%s is live: a test card, a tone and the words, by SRT to %s", f.stream.ID, f.stream.Ingest.SRT.URL), err
}

// webrtc plays the stream by WebRTC.
func (f *film) webrtc(ctx context.Context) (string, error) {
	const packets = 50
	codecs, err := f.whep(ctx, f.stream.Playback.WebRTC, packets)
	return fmt.Sprintf("%d packets of %s", packets, codecs), err
}

// stop ends the broadcast when all words have been sent once, and waits for the recording.
func (f *film) stop(ctx context.Context) (string, error) {
	select {
	case <-time.After(time.Until(f.began.Add(f.spoken + 6*time.Second))): // a tone before, a pause after, and what the start took
	case <-f.publisher.gone:
		return "", fmt.Errorf("ffmpeg ended: %s", f.publisher.said.String())
	case <-ctx.Done():
		return "", ctx.Err()
	}
	f.leave()
	err := until(ctx, patience, func() error {
		var list struct{ Data []asset }
		if err := f.call(ctx, http.MethodGet, "/v1/recordings?stream_id="+f.stream.ID, nil, &list); err != nil {
			return err
		}
		if len(list.Data) == 0 {
			return errors.New("there is no recording")
		}
		f.recording = list.Data[0]
		return f.recording.ready()
	})
	return fmt.Sprintf("%s, %.1f s of %s", f.recording.ID, f.recording.Duration, f.recording.Size), err
}

// leave ends the publisher, if there is one.
func (f *film) leave() {
	if f.publisher != nil {
		f.publisher.stop()
	}
}

// ready is nil when there is something to play.
func (a asset) ready() error {
	if a.Status != "ready" {
		return fmt.Errorf("%s is %s %s", a.ID, a.Status, a.Error.Message)
	}
	return nil
}

// captions has speech recognised at path, of a recording for one, and reads what was
// understood.
func (f *film) captions(ctx context.Context, path string) (string, error) {
	if err := f.call(ctx, http.MethodPost, path+"/captions", map[string]any{"generate": true, "language": "en"}, nil); err != nil {
		return "", err
	}
	var list struct {
		Data []struct {
			Status string
			URL    string
			Error  struct{ Message string }
		}
	}
	err := until(ctx, long, func() error {
		if err := f.call(ctx, http.MethodGet, path+"/captions", nil, &list); err != nil {
			return err
		}
		if len(list.Data) == 0 || list.Data[0].Status != "ready" {
			return fmt.Errorf("the captions are not ready: %+v", list.Data)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	track, err := f.load(ctx, list.Data[0].URL)
	if err != nil {
		return "", err
	}
	said, cues := cuesOf(string(track))
	if n, all := understood(said); 2*n < all {
		return "", fmt.Errorf("%d of %d words are in the captions: %s", n, all, said)
	}
	return fmt.Sprintf("%d cues: %s", cues, said), nil
}

// cuesOf is the text of a WebVTT file, and how many cues it has.
func cuesOf(vtt string) (text string, cues int) {
	var lines []string
	for block := range strings.SplitSeq(vtt, "\n\n") {
		if _, rest, ok := strings.Cut(block, " --> "); ok {
			_, said, _ := strings.Cut(rest, "\n")
			lines = append(lines, strings.Join(strings.Fields(said), " "))
		}
	}
	return strings.Join(lines, " / "), len(lines)
}

// understood counts the words that were spoken and are in a text.
func understood(text string) (n, all int) {
	letters := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) })
	}
	heard := letters(text)
	for _, word := range letters(words) {
		if all++; slices.Contains(heard, word) {
			n++
		}
	}
	return n, all
}

// cut makes a clip of four seconds of the recording.
func (f *film) cut(ctx context.Context) (string, error) {
	const seconds = 4
	body := map[string]any{"recording_id": f.recording.ID, "title": "Sluice clip", "start": 2, "duration": seconds, "precise": true}
	if err := f.call(ctx, http.MethodPost, "/v1/clips", body, &f.clip); err != nil {
		return "", err
	}
	if err := f.await(ctx, "/v1/clips/"+f.clip.ID, &f.clip); err != nil {
		return "", err
	}
	saw, err := f.see(ctx, f.clip.URL, seconds)
	return f.clip.ID + ", its file: " + saw, err
}

// await reads an asset until it is ready.
func (f *film) await(ctx context.Context, path string, a *asset) error {
	return until(ctx, long, func() error {
		if err := f.call(ctx, http.MethodGet, path, nil, a); err != nil {
			return err
		}
		return a.ready()
	})
}

// edit makes a video of the clip and the beginning of the recording, with a crossfade and a
// text, and plays it by DASH.
func (f *film) edit(ctx context.Context) (string, error) {
	timeline := map[string]any{
		"clips":    []map[string]any{{"asset_id": f.clip.ID}, {"asset_id": f.recording.ID, "in": 0, "out": 3, "transition": map[string]any{"type": "crossfade", "duration": 1}}},
		"overlays": []map[string]any{{"type": "text", "text": "Made with Sluice", "y": 0.9}}, "fade_out": 1,
	}
	var render struct {
		ID, Status string
		Progress   int
		Asset      string `json:"asset_id"`
		Error      struct{ Message string }
	}
	if err := f.call(ctx, http.MethodPost, "/v1/editor/renders", map[string]any{"title": "Sluice edit", "timeline": timeline}, &render); err != nil {
		return "", err
	}
	err := until(ctx, long, func() error {
		if err := f.call(ctx, http.MethodGet, "/v1/editor/renders/"+render.ID, nil, &render); err != nil {
			return err
		}
		if render.Status != "ready" {
			return fmt.Errorf("%s is %s (%d %%) %s", render.ID, render.Status, render.Progress, render.Error.Message)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var video asset
	if err := f.await(ctx, "/v1/vod/"+render.Asset, &video); err != nil {
		return "", err
	}
	saw, err := f.see(ctx, video.DASH, 6)
	return fmt.Sprintf("%s of %.1f s, by DASH: %s; look at it: %s", video.ID, video.Duration, saw, video.URL), err
}
