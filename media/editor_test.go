package media_test

import (
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/plans"
)

// cutter is a product with an ffmpeg, and films of two seconds, red and blue.
type cutter struct {
	*bundle
	red, blue string
}

func newCutter(t *testing.T, adjust ...func(*media.Config)) cutter {
	t.Helper()
	b := setup(t, append([]func(*media.Config){withFFmpeg(t)}, adjust...)...)
	film := func(colour string) string {
		return b.uploadOf(ffmpegtest.Plain(t, colour, 2, 320, 240, 0))
	}
	return cutter{b, film("red"), film("blue")}
}

// timeline is one of both films with a crossfade of a second.
func (c cutter) timeline() object {
	return object{"clips": []object{{"asset_id": c.red}, {"asset_id": c.blue, "transition": object{"type": "crossfade"}}}}
}

func TestATimelineBecomesAVideo(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	made := c.do("POST", "/v1/editor/renders", object{"title": "Both", "metadata": object{"a": "b"}, "timeline": c.timeline()}).want(202)
	at := "/v1/editor/renders/" + made.text("id")
	if made.text("status") != "queued" || made.get("duration") != 3.0 || made.get("asset_id") != nil || made.get("width") != 320.0 {
		t.Errorf("%s", made.raw)
	}
	c.work(1)
	done := c.do("GET", at, nil).want(200)
	if done.text("status") != "ready" || done.get("progress") != 100.0 || done.get("timeline.clips.1.transition.type") != "crossfade" {
		t.Fatalf("%s", done.raw)
	}
	video := c.do("GET", "/v1/vod/"+done.text("asset_id"), nil).want(200)
	if video.text("title") != "Both" || video.text("metadata.a") != "b" || video.text("status") != "ready" || video.text("resolution") != "320x240" {
		t.Errorf("%s", video.raw)
	}
	film := c.fetch(video.text("playback_url")).want(200).raw
	if info, err := mp4.Parse(bytes.NewReader(film), int64(len(film))); err != nil || math.Abs(info.Duration.Seconds()-3) > 0.05 {
		t.Errorf("%+v, %v", info, err)
	}
	if got := c.eventTypes(); got != "vod.ready vod.ready vod.ready" {
		t.Error(got)
	}
	c.wantFiles(3)
	if l := c.do("GET", "/v1/editor/renders?status=ready", nil).want(200); l.text("data.0.id") != made.text("id") || l.get("data.0.timeline") != nil {
		t.Errorf("%s", l.raw)
	}
	c.do("GET", "/v1/editor/renders?status=done", nil).wantError(400, "invalid_request", "status")
	c.do("POST", at+"/cancel", nil).wantError(409, "conflict")
	c.as(otherAccount, "GET", at, nil).wantError(404, "not_found")
	c.as(otherAccount, "POST", at+"/cancel", nil).wantError(404, "not_found")
	c.as(otherAccount, "POST", "/v1/editor/renders", object{"timeline": c.timeline()}).wantError(400, "invalid_request", "timeline.clips[0].asset_id", "timeline.clips[1].asset_id")
}

func TestEveryFaultOfATimelineIsNamedByItsPlace(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	waiting := c.do("POST", "/v1/vod", object{"source_url": "https://example.com/film.mp4"}).want(201).text("id")
	for _, x := range map[string]struct {
		body   string
		fields string
	}{
		"nothing":            {`{}`, "timeline.clips"},
		"unknown fields":     {`{"timeline": {"clips": [{"asset_id": "R", "colour": 1}], "x": 1}}`, "timeline.clips[0].colour timeline.x"},
		"form and values":    {`{"timeline": {"clips": [{"asset_id": "R", "out": 9, "colour": 1}, {"asset_id": "R", "in": "x", "speed": 9}], "overlays": 7, "audio": [7]}, "output": {"width": 321}, "x": 1}`, "timeline.clips[0].colour timeline.clips[0].out timeline.clips[1].in timeline.clips[1].speed timeline.overlays timeline.audio[0] output.width x"},
		"wrong types":        {`{"timeline": {"clips": [{"asset_id": 7, "in": "x", "mute": "no", "fit": 1}]}, "output": {"width": "wide", "frame_rate": "x"}}`, "timeline.clips[0].asset_id timeline.clips[0].mute timeline.clips[0].fit output.width output.frame_rate"},
		"times":              {`{"timeline": {"clips": [{"asset_id": "R", "in": 1, "out": 1}, {"asset_id": "B", "out": 2.5}, {"asset_id": "R", "in": -1, "speed": 9}, {"asset_id": "B", "out": 0.001}]}}`, "timeline.clips[0].out timeline.clips[1].out timeline.clips[2].in timeline.clips[2].speed timeline.clips[3].out"},
		"assets":             {`{"timeline": {"clips": [{"asset_id": "vod_none"}, {"asset_id": "W"}, {}], "audio": [{"asset_id": "x"}]}}`, "timeline.clips[0].asset_id timeline.clips[1].asset_id timeline.clips[2].asset_id timeline.audio[0].asset_id"},
		"transitions":        {`{"timeline": {"clips": [{"asset_id": "R", "transition": {"type": "fade"}}, {"asset_id": "B", "out": 0.5, "transition": {"type": "crossfade"}}, {"asset_id": "R", "transition": {"type": "wipe", "duration": 11}}]}}`, "timeline.clips[0].transition timeline.clips[1].transition.duration timeline.clips[2].transition.type timeline.clips[2].transition.duration"},
		"overlays":           {`{"timeline": {"clips": [{"asset_id": "R"}], "overlays": [{"type": "text", "text": "", "x": 2}, {"type": "image", "image": "!", "size": 0.1}, {"type": "image", "image": "aGVsbG8="}, {"type": "text", "text": "Hi 漢", "color": "red", "start": 3}, {"type": "text", "text": "Hi", "start": 1, "end": 0.5, "opacity": 2}, {"text": "Hi"}]}}`, "timeline.overlays[0].text timeline.overlays[0].x timeline.overlays[1].image timeline.overlays[1].size timeline.overlays[2].image timeline.overlays[3].text timeline.overlays[3].color timeline.overlays[3].start timeline.overlays[4].end timeline.overlays[4].opacity timeline.overlays[5].type"},
		"the whole":          {`{"timeline": {"fade_in": 3, "fade_out": -1, "clips": [{"asset_id": "R"}], "audio": [{"asset_id": "B", "start": 2, "in": 1, "out": 0.5}]}, "output": {"width": 321, "height": 9000, "frame_rate": 31}, "title": "\u0001"}`, "timeline.fade_in timeline.fade_out timeline.audio[0].start timeline.audio[0].out output.width output.height output.frame_rate title"},
		"too long a text":    {`{"timeline": {"clips": [{"asset_id": "R"}], "overlays": [{"type": "text", "text": "MMMMMMMMMMMMMMMMMMMMMMMMMM", "size": 0.5}]}}`, "timeline.overlays[0].size"},
		"too many of a kind": {`{"timeline": {"clips": [` + strings.Repeat(`{"asset_id": "R"},`, 32) + `{"asset_id": "R"}]}}`, "timeline.clips"},
	} {
		body := strings.NewReplacer(`"R"`, fmt.Sprintf("%q", c.red), `"B"`, fmt.Sprintf("%q", c.blue), `"W"`, fmt.Sprintf("%q", waiting)).Replace(x.body)
		got := c.do("POST", "/v1/editor/renders", body)
		got.wantError(400, "invalid_request", strings.Fields(x.fields)...)
		c.do("POST", "/v1/editor/preview", body).wantError(400, "invalid_request", strings.Fields(x.fields)...)
	}
	if l := c.do("GET", "/v1/editor/renders", nil).want(200); l.get("pagination.total") != 0.0 {
		t.Errorf("%s", l.raw)
	}
	none := setup(t)
	none.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).wantError(501, "not_implemented")
	none.do("POST", "/v1/editor/preview", object{"timeline": c.timeline()}).wantError(501, "not_implemented")
}

func TestAPreviewIsAPictureOfTheTimeline(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	body := object{"timeline": c.timeline(), "output": object{"width": 160, "height": 120}}
	for at, red := range map[string]bool{"0": true, "0.9": true, "2.5": false} {
		got := c.do("POST", "/v1/editor/preview?time="+at, body).want(200)
		picture, err := jpeg.Decode(bytes.NewReader(got.raw))
		if err != nil || picture.Bounds().Dx() != 160 {
			t.Fatalf("%v, %v", picture.Bounds(), err)
		}
		if r, _, b, _ := picture.At(80, 60).RGBA(); (r > b) != red {
			t.Errorf("at %s: red %d, blue %d", at, r, b)
		}
	}
	c.do("POST", "/v1/editor/preview?time=3", body).wantError(400, "invalid_request", "time")
	c.do("POST", "/v1/editor/preview?time=x", body).wantError(400, "invalid_request", "time")
}

func TestRendersTakeNoMoreStorageThanThereIs(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	var used int64
	if err := c.pool.QueryRow(t.Context(), `SELECT sum(size) FROM media_files`).Scan(&used); err != nil {
		t.Fatal(err)
	}
	c.config.Plans.(plans.Table)[""] = plans.Limits{FileBytes: 1 << 20, StorageBytes: used + 1000}
	c.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).wantError(403, "BILLING_002")
	c.config.Plans.(plans.Table)[""] = plans.Limits{FileBytes: 1 << 20, StorageBytes: 1 << 22}
	id := c.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).want(202).text("id")
	c.config.Plans.(plans.Table)[""] = plans.Limits{FileBytes: 1 << 20, StorageBytes: used + 1000} // another file came meanwhile
	c.work(1)
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "failed" || got.text("error.code") != "BILLING_002" {
		t.Errorf("%s", got.raw)
	}
	c.wantFiles(2)
}

func TestARenderOfAFilmThatIsDeletedFails(t *testing.T) {
	t.Parallel()
	c := newCutter(t, func(c *media.Config) { c.OwnerLimit = 1 })
	id := c.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).want(202).text("id")
	c.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).wantError(503, "TRANSCODE_001")
	c.do("DELETE", "/v1/vod/"+c.blue, nil).want(204)
	c.work(1)
	got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200)
	if got.text("status") != "failed" || got.text("error.message") != "timeline.clips[1].asset_id names nothing of yours." {
		t.Errorf("%s", got.raw)
	}
	c.wantFiles(1)
}

// slow is a timeline of n clips of eight seconds.
func (c cutter) slow(n int) object {
	clips := make([]object, n)
	for i := range clips {
		clips[i] = object{"asset_id": []string{c.red, c.blue}[i%2], "speed": 0.25}
	}
	return object{"clips": clips}
}

// heard tells of each change of a render's progress, until the test ends.
func (b *bundle) heard() func() string {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), `CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('renders', new.status || ' ' || new.progress); RETURN new; END $$;
		CREATE TRIGGER tell AFTER UPDATE ON media_renders FOR EACH ROW EXECUTE FUNCTION tell()`); err != nil {
		b.t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(b.t.Context(), b.pool.Config().ConnConfig.Copy())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(b.t.Context(), `LISTEN renders`); err != nil {
		b.t.Fatal(err)
	}
	return func() string {
		n, err := conn.WaitForNotification(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		return n.Payload
	}
}

// worker works the product's queues off until it is stopped, and tells of each attempt that
// ends.
func (b *bundle) worker() (*river.Client[pgx.Tx], <-chan *river.Event) {
	b.t.Helper()
	w := river.NewWorkers()
	media.AddWorkers(w, b.config)
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{Queues: media.Queues(), Workers: w, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	ended, cancel := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	b.t.Cleanup(cancel)
	if err := client.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = client.StopAndCancel(context.Background()) })
	return client, ended
}

// underWay waits until some of a render is made.
func underWay(heard func() string) {
	for said := ""; !strings.HasPrefix(said, "rendering ") || said == "rendering 0"; {
		said = heard()
	}
}

func TestARenderIsCancelledWhileItRuns(t *testing.T) {
	t.Parallel()
	c := newCutter(t, func(c *media.Config) { c.Plans = plans.Table{"": {FileBytes: 1 << 30, StorageBytes: 1 << 32}} })
	heard := c.heard()
	id := c.do("POST", "/v1/editor/renders", object{"timeline": c.slow(20), "output": object{"width": 1280, "height": 720, "frame_rate": 60}}).want(202).text("id")
	_, ended := c.worker()
	underWay(heard)
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "rendering" || got.get("progress") == 0.0 || got.get("progress") == 100.0 {
		t.Errorf("%s", got.raw)
	}
	c.do("POST", "/v1/editor/renders/"+id+"/cancel", nil).want(200)
	<-ended
	if got := c.do("POST", "/v1/editor/renders/"+id+"/cancel", nil).want(200); got.text("status") != "cancelled" || got.get("asset_id") != nil {
		t.Errorf("%s", got.raw)
	}
	c.wantFiles(2)
	c.wantNothingSetAside()
}

// wantNothingSetAside fails when storage is reserved for files that nobody writes.
func (b *bundle) wantNothingSetAside() {
	b.t.Helper()
	var n int
	if err := b.pool.QueryRow(b.t.Context(), `SELECT count(*) FROM media_reservations`).Scan(&n); err != nil || n != 0 {
		b.t.Errorf("%d reservations, %v", n, err)
	}
}

func TestARenderThatIsInterruptedIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	c := newCutter(t, func(c *media.Config) { c.Plans = plans.Table{"": {FileBytes: 1 << 30, StorageBytes: 1 << 32}} })
	heard := c.heard()
	id := c.do("POST", "/v1/editor/renders", object{"timeline": c.slow(8), "output": object{"width": 640, "height": 360}}).want(202).text("id")
	client, ended := c.worker()
	underWay(heard)
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	c.wantNothingSetAside()
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "queued" || got.get("progress") != 0.0 {
		t.Errorf("%s", got.raw)
	}
	if _, err := c.pool.Exec(t.Context(), `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'media_render'`); err != nil {
		t.Fatal(err)
	}
	_, ended = c.worker()
	<-ended
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "ready" {
		t.Errorf("%s", got.raw)
	}
	c.wantFiles(3)
}

// A render whose worker was killed in each attempt has no job any more, and fails.
func TestARenderThatNobodyWorksOnFails(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	id := c.do("POST", "/v1/editor/renders", object{"timeline": c.timeline()}).want(202).text("id")
	media.NewUpkeep(c.config).Round(t.Context())
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "queued" {
		t.Errorf("%s", got.raw)
	}
	if _, err := c.pool.Exec(t.Context(), `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE kind = 'media_render'`); err != nil {
		t.Fatal(err)
	}
	media.NewUpkeep(c.config).Round(t.Context())
	if got := c.do("GET", "/v1/editor/renders/"+id, nil).want(200); got.text("status") != "failed" || got.text("error.code") != "internal" {
		t.Errorf("%s", got.raw)
	}
	c.now = c.now.AddDate(0, 0, 31)
	media.NewUpkeep(c.config).Round(t.Context())
	c.as(identityheader.Caller{Account: "acct_1", Key: "key_1"}, "GET", "/v1/editor/renders/"+id, nil).wantError(404, "not_found")
}
