package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/client"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/server"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/media/plans"
)

// stage is a product with a real media engine, and MoQ beside it.
type stage struct {
	*bundle
	sent  func(packaging.Frame) // not nil: called for each frame that is published
	ahead time.Duration         // how long a publisher films before it connects
	gop   int                   // how many pictures follow each whole one; 0: 15
}

// newStage starts one, with the limits of MoQ, if given. It is stopped at the end of the
// test.
func newStage(t *testing.T, limits ...server.Limits) *stage {
	t.Helper()
	at := addrs(t, 8)
	e := engineAt(t, at)
	s := &stage{}
	s.bundle = setup(t, func(c *media.Config) {
		c.Now = time.Now
		c.Plans = plans.Table{"": {ConcurrentStreams: 2, BitrateKbps: 6000, FileBytes: 64 << 20, StorageBytes: 256 << 20}}
		c.Endpoints.Available, c.Endpoints.RTMP, c.Endpoints.MoQ = true, "rtmp://"+e.RTMP+"/live", "https://"+at[7]+"/moq"
		c.EngineHLS = "http://" + e.HLS + "/live"
		c.Identity.Now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
		c.FFmpeg = ffmpegtest.Tool(t).Binary
		if testing.Verbose() {
			c.Respond.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	})
	moq := media.MoQ{Addr: at[7]}
	for _, l := range limits {
		moq.Limits = l
	}
	s.runEngine(e, media.Beside{MoQ: moq})
	return s
}

// film has ffmpeg send a test card, as H.264 or by another encoder, and a tone by RTMP.
func (s *stage) film(show answer, encoder ...string) {
	s.t.Helper()
	if len(encoder) == 0 {
		encoder = []string{"libx264"}
	}
	args := []string{"-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15", "-f", "lavfi", "-i", "sine=frequency=440",
		"-c:v", encoder[0], "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "15", "-bf", "2", "-c:a", "aac", "-f", "flv", show.text("ingest.rtmp.url") + "/" + show.text("ingest.rtmp.stream_key")}
	cmd := exec.Command(s.config.FFmpeg, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if s.t.Failed() {
			s.t.Logf("ffmpeg: %s", said.String())
		}
	})
	await(s.t, func() bool { return s.live(show) })
}

func (s *stage) live(show answer) bool {
	return s.do("GET", "/v1/streams/"+show.text("id"), nil).want(200).text("status") == "live"
}

func (s *stage) show(fields object) answer {
	s.t.Helper()
	fields["title"] = "Show"
	return s.do("POST", "/v1/streams", fields).want(201)
}

// hashes are those of the certificates that the stream names.
func hashes(show answer) []string {
	var v struct {
		Playback struct {
			Hashes []string `json:"moq_certificate_hashes"`
		}
	}
	if err := json.Unmarshal(show.raw, &v); err != nil {
		panic(err)
	}
	return v.Playback.Hashes
}

// watch opens a session at an address.
func (s *stage) watch(show answer, address string, h session.Handler) *client.Client {
	s.t.Helper()
	c, err := client.Dial(s.t.Context(), address, hashes(show), h)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// take subscribes to a track.
func (s *stage) take(c *client.Client, show answer, name string) *session.Track {
	s.t.Helper()
	t, err := c.Subscribe(s.t.Context(), wire.Namespace{show.text("playback_id")}, name)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	return t
}

// next is the next object of a track.
func (s *stage) next(t *session.Track) session.Object {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	o, err := t.Next(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// What a publisher sends by RTMP plays by MoQ, on either transport, from whichever
// catalog; a film of it is one that ffmpeg reads.
func TestAStreamOfAnyProtocolPlaysByMoQ(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	show := s.show(object{"protocol": "rtmp"})
	s.film(show)
	address := show.text("playback.moq_url")
	for _, c := range []struct{ address, catalog string }{
		{address, packaging.CatalogMSF}, {strings.Replace(address, "https:", "moqt:", 1), packaging.CatalogHang},
	} {
		viewer := s.watch(show, c.address, client.Viewer{})
		tracks, err := packaging.ParseCatalog(s.next(s.take(viewer, show, c.catalog)).Payload)
		if err != nil || len(tracks) != 2 {
			t.Fatalf("%s: %d tracks, %v", c.catalog, len(tracks), err)
		}
		for _, described := range tracks {
			s.wantFilm(s.take(viewer, show, described.Name), described)
		}
		viewer.Close(wire.CloseNoError, "")
	}
	other := s.show(object{"protocol": "rtmp"})
	s.film(other, "libx265")
	viewer := s.watch(other, other.text("playback.moq_url"), client.Viewer{})
	tracks, err := packaging.ParseCatalog(s.next(s.take(viewer, other, packaging.CatalogMSF)).Payload)
	if err != nil || len(tracks) != 2 {
		t.Fatalf("H.265: %d tracks, %v", len(tracks), err)
	}
	for _, described := range tracks {
		if _, is265 := described.Codec.(*codecs.H265); described.Codec.IsVideo() != is265 {
			t.Errorf("%s is %T", described.Name, described.Codec)
		}
		s.wantFilm(s.take(viewer, other, described.Name), described)
	}
	var viewers int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM media_views WHERE subject = $1`, show.text("id")).Scan(&viewers); err != nil || viewers == 0 {
		t.Errorf("%d viewers, %v", viewers, err)
	}
}

// wantFilm takes three groups of a track and has ffmpeg read them.
func (s *stage) wantFilm(t *session.Track, described packaging.Track) {
	s.t.Helper()
	film := bytes.NewBuffer(bytes.Clone(described.Init))
	var first, last session.Object
	frames := 0
	for n := 0; last.Group < first.Group+3; n++ {
		last = s.next(t)
		if n == 0 {
			first = last
		}
		chunk, err := packaging.ParseChunk(last.Payload)
		if err != nil || len(chunk) != 1 {
			s.t.Fatalf("%s: %d frames in an object, %v", described.Name, len(chunk), err)
		}
		if n == 0 && !described.Begins(chunk[0]) {
			s.t.Errorf("%s begins with a frame that needs others", described.Name)
		}
		film.Write(last.Payload)
		frames++
	}
	name := filepath.Join(s.t.TempDir(), described.Name+".mp4")
	if err := os.WriteFile(name, film.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
	out, err := exec.Command(s.config.FFmpeg, "-nostdin", "-loglevel", "warning", "-xerror", "-i", name, "-f", "framecrc", "-").Output()
	got := strings.Count(string(out), "\n0,")
	if err != nil || got < frames*9/10 || got > frames+2 { // a decoder of sound leaves out some at the edges
		s.t.Errorf("%s: ffmpeg shows %d of %d frames, %v", described.Name, got, frames, err)
	}
}

// program is a publisher by MoQ: the tracks of a film, which it sends as fast as
// they were filmed.
type program struct {
	client.Viewer
	live *broadcast.Broadcast
}

// Subscribed implements session.Handler.
func (p program) Subscribed(sub *session.Subscription) {
	track := p.live.Track(sub.Request.Name)
	if track == nil {
		_ = sub.Reject(wire.RequestNoTrack, "no such track")
		return
	}
	_ = sub.Accept(track.Edge())
	go func() {
		_ = track.Serve(sub.Context(), broadcast.RangeOf(sub.Request), func(ctx context.Context, group uint64, priority byte) (broadcast.Writer, error) {
			return sub.Open(ctx, group, priority)
		})
	}()
}

// filmed makes a film of CMAF with one frame in each chunk, and returns its tracks and
// the chunks with theirs.
func (s *stage) filmed() (tracks []packaging.Track, chunks []fmp4.Part) {
	s.t.Helper()
	name := filepath.Join(s.t.TempDir(), "film.mp4")
	cmd := exec.Command(s.config.FFmpeg, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15:duration=120", "-f", "lavfi", "-i", "sine=duration=120",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", fmt.Sprint(max(s.gop, 15)), "-c:a", "aac", "-movflags", "empty_moov+default_base_moof+frag_every_frame", "-f", "mp4", name)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	var init fmp4.Init
	if err := init.Unmarshal(bytes.NewReader(raw)); err != nil {
		s.t.Fatal(err)
	}
	for _, t := range init.Tracks {
		track, err := packaging.NewTrack([]string{"", "picture", "sound"}[t.ID], t.Codec, t.TimeScale)
		if err != nil {
			s.t.Fatal(err)
		}
		tracks = append(tracks, track)
	}
	var parts fmp4.Parts
	if err := parts.Unmarshal(raw[bytes.Index(raw, []byte("moof"))-4:]); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range parts {
		chunks = append(chunks, *p)
	}
	return tracks, chunks
}

// broadcast publishes a film to a stream by MoQ until stop is called.
func (s *stage) broadcast(show answer) (c *client.Client, stop func()) {
	s.t.Helper()
	tracks, parts := s.filmed()
	catalogs, err := packaging.Catalogs(tracks)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]*broadcast.Track{}
	for _, t := range tracks {
		out[t.Name] = broadcast.NewTrack(1)
	}
	live := broadcast.New(out, catalogs)
	id := show.text("playback_id")
	ctx, cancel := context.WithCancel(s.t.Context())
	done, filmed := make(chan struct{}), make(chan struct{})
	connect := filmed
	go func() {
		defer close(done)
		began := time.Now().Add(-s.ahead)
		for _, p := range parts {
			t := p.Tracks[0]
			described := tracks[t.ID-1]
			if at := described.Duration(t.BaseTime); filmed != nil && at >= s.ahead {
				close(filmed)
				filmed = nil
			}
			due := time.NewTimer(time.Until(began.Add(time.Duration(float64(t.BaseTime) / float64(described.Scale) * float64(time.Second)))))
			select {
			case <-due.C:
			case <-ctx.Done():
				return
			}
			chunk, err := packaging.Chunk(p.SequenceNumber, t.BaseTime, t.Samples[0])
			if err != nil {
				s.t.Error(err)
				return
			}
			if s.sent != nil {
				s.sent(packaging.Frame{Time: uint64(described.Duration(t.BaseTime)), Payload: t.Samples[0].Payload})
			}
			begins := p.SequenceNumber < 4 || t.BaseTime%(40*1024) == 0 // of sound: about once a second
			if described.Codec.IsVideo() {
				begins = described.Begins(packaging.Frame{Payload: t.Samples[0].Payload})
			}
			out[described.Name].Append(chunk, begins)
		}
	}()
	<-connect
	c = s.watch(show, show.text("ingest.moq.url")+"/"+show.text("ingest.moq.stream_key"), program{live: live})
	if err := c.Announce(s.t.Context(), wire.Namespace{id}); err != nil {
		s.t.Fatal(err)
	}
	stop = func() {
		cancel()
		<-done
		c.Close(wire.CloseNoError, "")
		<-c.Ended
	}
	return c, stop
}

// What is published by MoQ is on air for everybody: by HLS, as an event, and as a
// recording.
func TestAMoQPublisherIsSeenByHLSAndRecorded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	show := s.show(object{"protocol": "moq", "recording": object{"enabled": true}})
	_, stop := s.broadcast(show)
	await(s.t, func() bool { return s.live(show) })
	viewer := s.watch(show, show.text("playback.moq_url"), client.Viewer{})
	tracks, err := packaging.ParseCatalog(s.next(s.take(viewer, show, packaging.CatalogMSF)).Payload)
	if err != nil || len(tracks) != 2 {
		t.Fatalf("%d tracks, %v", len(tracks), err)
	}
	for _, described := range tracks {
		s.wantFilm(s.take(viewer, show, described.Name), described)
	}
	front := httptest.NewServer(s.handler)
	defer front.Close()
	list := front.URL + "/v1/playback/" + show.text("playback_id") + "/index.m3u8"
	await(s.t, func() bool {
		res, err := http.Get(list)
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == 200
	})
	out, err := exec.Command(s.config.FFmpeg, "-nostdin", "-loglevel", "info", "-i", list, "-t", "2", "-f", "framecrc", "-").CombinedOutput()
	if frames := strings.Count(string(out), "\n0,"); err != nil || frames < 20 || !strings.Contains(string(out), "h264") || !strings.Contains(string(out), "aac") {
		t.Errorf("%d frames by HLS, %v\n%s", frames, err, out)
	}
	stop()
	await(s.t, func() bool { return !s.live(show) })
	await(s.t, func() bool {
		return s.do("GET", "/v1/recordings?stream_id="+show.text("id"), nil).want(200).text("data.0.status") == "ready"
	})
	if types := s.eventTypes(); !strings.HasPrefix(types, "stream.started stream.ended") {
		t.Error(types)
	}
}

// Nobody gets an object, or a place in the engine, without the stream's own token or
// key.
func TestWhoHasNoTokenOrKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	signed, other := s.show(object{"playback_policy": "signed"}), s.show(object{"protocol": "moq"})
	s.film(signed)
	token := s.do("POST", "/v1/streams/"+signed.text("id")+"/tokens", object{"expires_in": 10}).want(201)
	wt := signed.text("playback.moq_url")
	raw := strings.Replace(wt, "https:", "moqt:", 1)
	key := func(show answer) string {
		return "?key=" + strings.Split(show.text("ingest.moq.stream_key"), "?key=")[1]
	}
	for name, c := range map[string]struct{ address, want string }{
		"no token":            {wt, "401"},
		"no token, QUIC":      {raw, "invalid_token"},
		"a changed token":     {wt + "?token=" + token.text("token") + "a", "401"},
		"another's key":       {wt + key(other), "401"},
		"another's key, QUIC": {raw + key(other), "STREAM_004"},
		"an empty key":        {wt + "?key=", "401"},
		"another protocol":    {wt + key(signed), "400"},
		"no such stream":      {strings.Replace(wt, signed.text("playback_id"), "play_00000000000000000000", 1), "404"},
		"no stream":           {strings.Replace(wt, "/moq/", "/elsewhere/", 1), "404"},
	} {
		_, err := client.Dial(t.Context(), c.address, hashes(signed), client.Viewer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := client.Dial(t.Context(), wt, []string{strings.Repeat("0", 64)}, client.Viewer{}); err == nil {
		t.Error("a certificate with another hash passes")
	}

	viewer := s.watch(signed, token.text("moq_url"), client.Viewer{})
	s.next(s.take(viewer, signed, packaging.CatalogMSF))
	for name, ns := range map[string]wire.Namespace{"another stream": {other.text("playback_id")}, "below": {signed.text("playback_id"), "x"}, "none": nil} {
		var refused wire.Refusal
		if _, err := viewer.Subscribe(t.Context(), ns, packaging.CatalogMSF); !errors.As(err, &refused) || refused.Code != wire.RequestNoTrack {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := viewer.Announce(t.Context(), wire.Namespace{signed.text("playback_id")}); err == nil {
		t.Error("a viewer publishes")
	}
	publish := other.text("ingest.moq.url") + "/" + other.text("ingest.moq.stream_key")
	publisher := s.watch(other, publish, client.Viewer{})
	if err := publisher.Announce(t.Context(), wire.Namespace{signed.text("playback_id")}); err == nil {
		t.Error("a publisher announces another's stream")
	}
	s.do("POST", "/v1/streams/"+other.text("id")+"/key", nil).want(200)
	if _, err := client.Dial(t.Context(), publish, hashes(other), client.Viewer{}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a key that was replaced: %v", err)
	}
	if err := publisher.Announce(t.Context(), wire.Namespace{other.text("playback_id")}); err != nil {
		t.Errorf("who is connected when the key is replaced stays: %v", err)
	}
	select {
	case <-viewer.Ended: // the token has
	case <-time.After(patience):
		t.Error("the session outlives its token")
	}
}

// A publisher whose pictures began long before he connected is seen and heard together.
func TestPicturesAndSoundOfMoQKeepTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.ahead, s.gop = 7*time.Second, 60 // pictures begin 3 s before the present, sound less than a second
	var mu sync.Mutex
	published, twice := map[string]time.Duration{}, map[string]bool{}
	s.sent = func(f packaging.Frame) {
		mu.Lock()
		defer mu.Unlock()
		_, there := published[string(f.Payload)]
		published[string(f.Payload)], twice[string(f.Payload)] = time.Duration(f.Time), there
	}
	show := s.show(object{"protocol": "moq"})
	_, stop := s.broadcast(show)
	defer stop()
	front := httptest.NewServer(s.handler)
	defer front.Close()
	base := front.URL + "/v1/playback/" + show.text("playback_id") + "/"
	load := func(file string) (body []byte) {
		await(t, func() bool {
			res, err := http.Get(base + file)
			if err != nil {
				return false
			}
			defer res.Body.Close()
			body, err = io.ReadAll(res.Body)
			return err == nil && res.StatusCode == 200
		})
		return body
	}
	// How much later by HLS than as it was published, of pictures and of sound.
	moved := map[string]time.Duration{}
	load("index.m3u8")
	for _, name := range []string{"video1", "audio2"} {
		var list playlist.Media
		if err := list.Unmarshal(load(name + "_stream.m3u8")); err != nil {
			t.Fatal(err)
		}
		var init fmp4.Init
		if err := init.Unmarshal(bytes.NewReader(load(list.Map.URI))); err != nil {
			t.Fatal(err)
		}
		scale := packaging.Track{Scale: init.Tracks[0].TimeScale}
		var parts fmp4.Parts
		if err := parts.Unmarshal(load(list.Segments[len(list.Segments)-1].URI)); err != nil {
			t.Fatal(err)
		}
		at := parts[0].Tracks[0].BaseTime
		for _, sample := range parts[0].Tracks[0].Samples {
			mu.Lock()
			was, ok := published[string(sample.Payload)]
			ok = ok && !twice[string(sample.Payload)]
			mu.Unlock()
			if ok {
				moved[name] = scale.Duration(at) - was
			}
			at += uint64(sample.Duration)
		}
	}
	if len(moved) != 2 || (moved["video1"]-moved["audio2"]).Abs() > time.Second {
		t.Errorf("moved by %v", moved)
	}
}
