package media_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/child/childtest"
)

// studio is an engine of which the test says who publishes.
type studio struct {
	*bundle
	watcher *engine.Watcher
	paths   map[string]object // by playback id
	kicked  []string          // ids of connections, in order
}

func newStudio(t *testing.T, adjust ...func(*media.Config)) *studio {
	t.Helper()
	s := &studio{bundle: setup(t, adjust...), paths: map[string]object{}}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, id, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v3/"), "/kick/"); ok && r.Method == http.MethodPost {
			s.kicked = append(s.kicked, kind+" "+id)
			return
		}
		items := []object{{"name": "live/other", "ready": false}, {"name": "elsewhere", "ready": true, "source": object{"id": "x"}}}
		for _, p := range s.paths {
			items = append(items, p)
		}
		_ = json.NewEncoder(w).Encode(object{"pageCount": 1, "items": items})
	}))
	t.Cleanup(api.Close)
	s.watcher = media.NewWatcher(s.config)
	s.watcher.API = engine.API{Base: api.URL, Client: api.Client()}
	s.watcher.Dir = t.TempDir()
	return s
}

// publish has a publisher send to a stream, and bytes come from it so far.
func (s *studio) publish(stream answer, connection string, bytes int, tracks ...string) {
	id := stream.text("playback_id")
	s.paths[id] = object{"name": "live/" + id, "ready": true, "tracks": tracks, "bytesReceived": bytes, "source": object{"type": "rtmpConn", "id": connection}}
}

func (s *studio) leave(stream answer) { delete(s.paths, stream.text("playback_id")) }

func (s *studio) step() {
	s.t.Helper()
	if err := s.watcher.Step(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *studio) status(stream answer) string {
	s.t.Helper()
	return s.do("GET", "/v1/streams/"+stream.text("id"), nil).want(200).text("status")
}

// record puts a file where the engine would have recorded it, from start on.
func (s *studio) record(stream answer, start time.Time, content []byte) {
	s.t.Helper()
	dir := filepath.Join(s.watcher.Dir, "live", stream.text("playback_id"))
	name := filepath.Join(dir, start.Format("2006-01-02_15-04-05")+"-000007.mp4")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(name, s.now, s.now); err != nil {
		s.t.Fatal(err)
	}
}

func (s *studio) create(fields object) answer {
	s.t.Helper()
	fields["title"] = "Show"
	return s.do("POST", "/v1/streams", fields).want(201)
}

func TestAPublisherTakesTheStreamOnAirAndOff(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{})
	s.publish(show, "c1", 0, "H264", "MPEG-4 Audio")
	s.step()
	s.step()
	if s.status(show) != "live" {
		t.Error(s.status(show))
	}
	s.leave(show)
	s.now = s.now.Add(time.Minute)
	s.step()
	s.step()
	if s.status(show) != "ended" || s.eventTypes() != "stream.started stream.ended" || s.events()[1].Data["duration"] != 60.0 {
		t.Errorf("%s, %+v", s.status(show), s.events())
	}
}

func TestAScheduledStopClosesThePublisher(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show, gone := s.create(object{}), s.create(object{})
	s.publish(show, "c1", 0)
	s.publish(gone, "c2", 0)
	s.step()
	s.act(show.text("id"), "stop").want(200)
	s.do("DELETE", "/v1/streams/"+gone.text("id"), nil).want(204)
	s.step()
	if len(s.kicked) != 2 || !strings.HasPrefix(s.kicked[0], "rtmpconns c") {
		t.Errorf("%v", s.kicked)
	}
	if s.status(show) != "ended" {
		t.Error("live again")
	}
}

func TestPublishersWhoBreakARuleAreClosed(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	odd, fast := s.create(object{}), s.create(object{"settings": object{"bitrate": "1000k"}})
	s.publish(odd, "odd", 0, "MPEG-1/2 Video")
	s.publish(fast, "fast", 0, "H264")
	s.step()
	if len(s.kicked) != 1 || s.status(odd) != "idle" || s.status(fast) != "live" {
		t.Errorf("%v", s.kicked)
	}
	s.leave(odd)
	s.now = s.now.Add(20 * time.Second)
	s.publish(fast, "fast", 4_000_000, "H264") // 1,600 kbit/s
	s.step()
	if len(s.kicked) != 2 {
		t.Errorf("%v", s.kicked)
	}
	var codes []string
	for _, e := range s.events() {
		if e.Type == "stream.error" {
			codes = append(codes, e.ErrorCode)
		}
	}
	if strings.Join(codes, " ") != "STREAM_005 STREAM_002" {
		t.Error(codes)
	}
}

// ask is a question of the engine, and the code of our answer.
func (s *studio) ask(q object) string {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", bodyOf(s.t, q))
	r.SetBasicAuth("engine", "password")
	w := httptest.NewRecorder()
	engine.Auth(s.watcher.Streams, s.watcher.Reader, httpapi.Adapter{}, "password").ServeHTTP(w, r)
	if w.Code == http.StatusNoContent {
		return ""
	}
	return answer{t: s.t, raw: w.Body.Bytes()}.text("error.code")
}

func TestWhoMayPublishAndRead(t *testing.T) {
	t.Parallel()
	s := newStudio(t) // two streams on air
	show, srt := s.create(object{}), s.create(object{"protocol": "srt"})
	key := func(a answer) string { return a.text("ingest.webrtc.stream_key") }
	path := func(a answer) string { return "live/" + a.text("playback_id") }
	publish := func(a answer, protocol, key string) object {
		return object{"action": "publish", "path": path(a), "protocol": protocol, "query": "key=" + key}
	}
	cases := map[string]struct {
		question object
		want     string
	}{
		"the key in the address": {publish(show, "rtmp", key(show)), ""},
		"over TLS":               {publish(show, "rtmps", key(show)), ""},
		"the key as password":    {object{"action": "publish", "path": path(srt), "protocol": "srt", "user": "key", "password": key(srt)}, ""},
		"another key":            {publish(show, "rtmp", key(srt)), "STREAM_004"},
		"no key":                 {publish(show, "rtmp", ""), "STREAM_004"},
		"another protocol":       {publish(show, "srt", key(show)), "STREAM_001"},
		"no such stream":         {object{"action": "publish", "path": "live/play_" + strings.Repeat("0", 20), "protocol": "rtmp"}, "STREAM_004"},
		"another folder":         {object{"action": "publish", "path": "elsewhere", "protocol": "rtmp"}, "STREAM_004"},
		"our proxy reads":        {object{"action": "read", "path": path(show), "ip": "127.0.0.1", "protocol": "hls"}, ""},
		"it reads pictures":      {object{"action": "read", "path": path(show), "ip": "::1", "protocol": "webrtc"}, ""},
		"a proxy of RTMP reads":  {object{"action": "read", "path": path(show), "ip": "127.0.0.1", "protocol": "rtmp"}, "AUTH_002"},
		"a proxy of SRT reads":   {object{"action": "read", "path": path(show), "ip": "127.0.0.1", "protocol": "srt"}, "AUTH_002"},
		"a proxy of who knows":   {object{"action": "read", "path": path(show), "ip": "127.0.0.1"}, "AUTH_002"},
		"somebody reads":         {object{"action": "read", "path": path(show), "ip": "192.0.2.1"}, "AUTH_002"},
		"the engine's own API":   {object{"action": "api", "path": path(show)}, "AUTH_002"},
	}
	for name, c := range cases {
		if got := s.ask(c.question); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s.publish(show, "c1", 0)
	s.step()
	if got := s.ask(publish(show, "rtmp", key(show))); got != "STREAM_004" {
		t.Errorf("a key in use: %q", got)
	}
	s.act(s.stream("third"), "start").want(200)
	if got := s.ask(publish(srt, "srt", key(srt))); got != "STREAM_003" {
		t.Errorf("a stream too many: %q", got)
	}
	w := httptest.NewRecorder()
	engine.Auth(s.watcher.Streams, s.watcher.Reader, httpapi.Adapter{}, "password").ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without the password: %d", w.Code)
	}
}

// readsAs is how a request of the product to the engine shows who makes it.
func (s *studio) readsAs(given string) (user, password string) {
	s.t.Helper()
	var shown *http.Request
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown = r }))
	s.t.Cleanup(engine.Close)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, engine.URL, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if given != "" {
		req.Header.Set("Authorization", given)
	}
	res, err := (&http.Client{Transport: s.watcher.Reader.Transport(http.DefaultTransport)}).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	if user, password, ok := shown.BasicAuth(); ok {
		return user, password
	}
	return "", shown.Header.Get("Authorization")
}

// The product may be on another machine than the engine.
func TestTheProductReadsFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{})
	user, password := s.readsAs("")
	if user != "product" || len(password) != 64 {
		t.Fatalf("%q %d", user, len(password))
	}
	if _, other := newStudio(t).readsAs(""); other == password {
		t.Error("the product of another database reads")
	}
	if _, own := s.readsAs("Bearer key"); own != "Bearer key" {
		t.Errorf("a publisher comes with %q", own)
	}
	question := func(change object) object {
		q := object{"action": "read", "path": "live/" + show.text("playback_id"), "ip": "192.0.2.1", "protocol": "hls", "user": user, "password": password}
		for name, value := range change {
			q[name] = value
		}
		return q
	}
	for name, c := range map[string]struct {
		change object
		want   string
	}{
		"segments": {nil, ""}, "pictures": {object{"protocol": "webrtc"}, ""},
		"by a protocol of others":   {object{"protocol": "rtsp"}, "AUTH_002"},
		"to publish":                {object{"action": "publish"}, "STREAM_004"},
		"with another password":     {object{"password": strings.Repeat("0", 64)}, "AUTH_002"},
		"with none":                 {object{"password": ""}, "AUTH_002"},
		"as somebody else":          {object{"user": "viewer"}, "AUTH_002"},
		"a stream that is no name":  {object{"path": "live/x"}, "STREAM_004"},
		"with none on this machine": {object{"password": "", "ip": "127.0.0.1"}, ""},
	} {
		if got := s.ask(question(c.change)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAnEngineThatDoesNotAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{})
	s.publish(show, "c1", 0)
	s.step()
	s.watcher.API.Base = "http://127.0.0.1:1"
	if err := s.watcher.Step(t.Context()); err == nil {
		t.Error("no error")
	}
	if s.status(show) != "live" {
		t.Error("ended for want of an answer")
	}
}

func TestKeysAreFoundWhereProtocolsCarryThem(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{{"t", "p", "key=q", "t"}, {"", "p", "key=q", "p"}, {"", "", "a=b&key=q", "q"}, {"", "", "%zz", ""}, {"", "", "", ""}} {
		if got := streams.KeyOf(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v: %q", c, got)
		}
	}
}

func TestAPublisherJoinsAStreamThatAScheduleHasStarted(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(c *media.Config) { c.Endpoints.Available = true })
	show := s.create(object{})
	started := s.act(show.text("id"), "start").want(200)
	s.step()
	if s.status(show) != "starting" || started.text("status") != "starting" || started.get("changed") != true || s.eventTypes() != "" {
		t.Errorf("without a publisher: %s, %s, %s", s.status(show), started.raw, s.eventTypes())
	}
	if again := s.act(show.text("id"), "start").want(200); again.get("changed") != false {
		t.Errorf("%s", again.raw)
	}
	if n := s.do("GET", "/v1/streams?status=starting", nil).want(200).get("pagination.total"); n != 1.0 {
		t.Errorf("%v streams are starting", n)
	}
	s.act(show.text("id"), "pause").wantError(409, "conflict")
	s.now = s.now.Add(time.Hour)
	s.publish(show, "c1", 0)
	s.step()
	if s.status(show) != "live" || s.eventTypes() != "stream.started" {
		t.Errorf("with a publisher: %s, %s", s.status(show), s.eventTypes())
	}
	s.now = s.now.Add(time.Minute)
	s.leave(show)
	s.step()
	if s.status(show) != "ended" || s.eventTypes() != "stream.started stream.ended" || s.events()[1].Data["duration"] != 60.0 {
		t.Errorf("%s, %+v", s.status(show), s.events())
	}
}

// A start to which nobody came was no broadcast, and leaves nothing behind.
func TestAStartIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(c *media.Config) { c.Endpoints.Available = true }) // two streams on air
	show, other, third := s.create(object{}), s.create(object{}), s.create(object{})
	s.act(show.text("id"), "start").want(200)
	s.act(other.text("id"), "start").want(200)
	s.act(third.text("id"), "start").wantError(429, "STREAM_003")
	s.act(show.text("id"), "stop").want(200)
	if s.status(show) != "idle" {
		t.Error(s.status(show))
	}
	s.wantSessions(show.text("id"), 0, "idle")
	s.publish(show, "c1", 0)
	s.step()
	s.act(show.text("id"), "stop").want(200)
	s.act(show.text("id"), "start").want(200)
	s.step() // the publisher has not gone: it is on air again
	if s.status(show) != "live" || len(s.kicked) != 0 {
		t.Error(s.status(show), s.kicked)
	}
	s.act(show.text("id"), "stop").want(200)
	s.leave(show)
	s.step()
	s.act(show.text("id"), "start").want(200)
	s.act(show.text("id"), "stop").want(200)
	if s.status(show) != "ended" || s.eventTypes() != "stream.started stream.ended stream.started stream.ended" {
		t.Error(s.status(show), s.eventTypes())
	}
	s.do("DELETE", "/v1/streams/"+other.text("id"), nil).want(204)
	if s.eventTypes() != "stream.started stream.ended stream.started stream.ended stream.deleted" {
		t.Error(s.eventTypes())
	}
}

func TestAStreamTooManyIsClosedAgain(t *testing.T) {
	t.Parallel()
	s := newStudio(t) // two streams on air
	shows := []answer{s.create(object{}), s.create(object{}), s.create(object{})}
	for i, show := range shows[:2] {
		s.publish(show, "c"+string(rune('0'+i)), 0)
	}
	s.step()
	s.publish(shows[2], "late", 0)
	s.step()
	s.step() // it has not gone yet: closed again, told once
	if strings.Join(s.kicked, " ") != "rtmpconns late rtmpconns late" || s.status(shows[2]) != "idle" || strings.Count(s.eventTypes(), "stream.error") != 1 {
		t.Errorf("%v, %s", s.kicked, s.eventTypes())
	}
}

func TestOnePublisherInTroubleKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	good := s.create(object{})
	odd := s.create(object{})
	s.publish(odd, "odd", 0, "MPEG-1/2 Video")
	s.paths[odd.text("playback_id")]["source"].(object)["type"] = "nobody knows"
	s.publish(good, "good", 0, "H264")
	if err := s.watcher.Step(t.Context()); err == nil {
		t.Error("no error, though a publisher cannot be closed")
	}
	if s.status(good) != "live" || s.status(odd) != "idle" {
		t.Error(s.status(good), s.status(odd))
	}
}

func TestTheWatcherStepsAtEveryTick(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{})
	s.publish(show, "c1", 0)
	ctx, cancel := context.WithCancel(t.Context())
	tick, done := make(chan time.Time), make(chan struct{})
	go func() { s.watcher.Run(ctx, tick); close(done) }()
	tick <- s.now
	tick <- s.now // taken only when the first step is over
	cancel()
	<-done
	if s.status(show) != "live" {
		t.Error(s.status(show))
	}
}

// An engine is a program of its own: here a script that keeps what it is told and
// ends, so that it has to be started again.
func TestTheEngineIsConfiguredAndStartedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	starts := filepath.Join(dir, "starts")
	if err := syscall.Mkfifo(starts, 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "engine.sh")
	childtest.Program(t, script, "#!/bin/sh\necho \"$TZ $1\" > "+starts+"\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- media.RunEngine(ctx, b.config, engine.Config{Binary: script, Dir: filepath.Join(dir, "engine"), RTMP: "127.0.0.1:1935",
			API: "127.0.0.1:1", Again: time.Millisecond, Output: io.Discard}, media.Beside{})
	}()
	for range 2 {
		lines, err := os.ReadFile(starts) // waits for the script to write, once or more often
		want := "UTC " + filepath.Join(dir, "engine", "mediamtx.yml") + "\n"
		if err != nil || len(lines) == 0 || strings.ReplaceAll(string(lines), want, "") != "" {
			t.Fatalf("%q, %v", lines, err)
		}
	}
	told, err := os.ReadFile(filepath.Join(dir, "engine", "mediamtx.yml"))
	if err != nil || !strings.Contains(string(told), "rtmpAddress: 127.0.0.1:1935\n") || !strings.Contains(string(told), "authHTTPAddress: http://engine:auth_") {
		t.Errorf("%s, %v", told, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "engine", "mediamtx.yml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password can be read by others: %v, %v", info.Mode(), err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
