package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
)

// start works the product's queues off as a worker does, until the test ends, and
// tells which jobs are completed.
func (b *bundle) start() <-chan *river.Event {
	b.t.Helper()
	w := river.NewWorkers()
	media.AddWorkers(w, b.config)
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{Queues: media.Queues(), Workers: w, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	done, cancel := client.Subscribe(river.EventKindJobCompleted)
	b.t.Cleanup(cancel)
	if err := client.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = client.StopAndCancel(context.Background()) })
	return done
}

// argument is a field of what a job was asked for.
func argument(t *testing.T, e *river.Event, name string) string {
	t.Helper()
	var args map[string]any
	if err := json.Unmarshal(e.Job.EncodedArgs, &args); err != nil {
		t.Fatal(err)
	}
	text, _ := args[name].(string)
	return text
}

// One who queues sources that never come holds a share of the workers, and another's
// video arrives meanwhile.
func TestSourcesThatHangDelayNobodyElse(t *testing.T) {
	t.Parallel()
	let, hanging := make(chan struct{}), make(chan struct{}, 100)
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			hanging <- struct{}{}
			<-let
		}
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(film))
	})
	b := setup(t, allow)
	t.Cleanup(func() { close(let) })
	for range 20 {
		b.do("POST", "/v1/vod", object{"source_url": source + "/hang"}).want(201)
	}
	id := b.as(otherAccount, "POST", "/v1/vod", object{"source_url": source + "/film.mp4"}).want(201).text("id")
	done := b.start()
	if got := argument(t, <-done, "asset_id"); got != id {
		t.Errorf("%s is done first", got)
	}
	if n := len(hanging); n > 2 {
		t.Errorf("%d workers wait for one account", n)
	}
}

func TestAQueueTakesSoMuchOfAnOwner(t *testing.T) {
	t.Parallel()
	source, allow := filmOrigin(t)
	b := setup(t, allow, withFFmpeg(t), func(c *media.Config) { c.OwnerLimit = 1 })
	video := object{"source_url": source, "profile": "240p"}
	b.do("POST", "/v1/vod", video).want(201)
	full := b.do("POST", "/v1/vod", object{"source_url": source})
	full.wantError(503, "TRANSCODE_001")
	if full.header.Get("Retry-After") != "30" {
		t.Error("no Retry-After")
	}
	made := b.send("/v1/vod/upload", ffmpegtest.Film(t, "mp4")).want(201).text("id")
	b.do("POST", "/v1/vod/"+made+"/renditions", object{"profile": "240p"}).wantError(503, "TRANSCODE_001")
	b.as(otherAccount, "POST", "/v1/vod", video).want(201)
}

// Who sends what is no video again and again is refused before it is looked at, for a
// while, and nobody else is.
func TestUploadsOfNoVideoAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begins := "\x00\x00\x00\x10ftypisom\x00\x00\x00\x00 and then no video"
	for range 10 {
		b.send("/v1/vod/upload", []byte(begins)).wantError(400, "STORAGE_002")
	}
	refused := b.send("/v1/vod/upload", film)
	refused.wantError(429, "rate_limit_exceeded")
	if refused.header.Get("Retry-After") != "60" {
		t.Error("no Retry-After")
	}
	b.as(otherAccount, "POST", "/v1/vod/upload", string(film), "Content-Type", "video/mp4").want(201)
}

// One transcoding runs at a time: those who wait for theirs have it in turn.
func TestRenditionsAreMadeInTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	real := string(ffmpegtest.Film(t, "mp4"))
	order := func(who identityheader.Caller) string {
		id := b.as(who, "POST", "/v1/vod/upload", real, "Content-Type", "video/mp4").want(201).text("id")
		return b.as(who, "POST", "/v1/vod/"+id+"/renditions", object{"profile": "240p"}).want(202).text("id")
	}
	greedy := map[string]bool{}
	for range 3 {
		greedy[order(identityheader.Caller{Account: "acct_1"})] = true
	}
	modest := order(otherAccount)
	done := b.start()
	first, second := argument(t, <-done, "rendition_id"), argument(t, <-done, "rendition_id")
	if first != modest && second != modest || !greedy[first] && !greedy[second] {
		t.Errorf("%s and %s are made before %s", first, second, modest)
	}
}

// A body that trickles holds a place of its sender's, and no other conversion.
func TestBodiesThatTrickleDelayNobodyElse(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t)) // eight bodies, two of one account
	let, ended := make(chan struct{}), make(chan int)
	for range 2 {
		slow := stalled{make(chan struct{}), let}
		go func() {
			r, w := b.request("POST", "/v1/mux", slow)
			b.handler.ServeHTTP(w, r)
			ended <- w.Code
		}()
		<-slow.asked
	}
	b.send("/v1/mux", film).wantError(503, "TRANSCODE_001")
	real := string(ffmpegtest.Film(t, "mp4"))
	b.as(otherAccount, "POST", "/v1/mux?format=ts", real, "Content-Type", "video/mp4").want(200)
	close(let)
	for range 2 {
		if status := <-ended; status != 400 {
			t.Errorf("a body that broke off: %d", status)
		}
	}
	b.send("/v1/mux?format=ts", []byte(real)).want(200)
}
