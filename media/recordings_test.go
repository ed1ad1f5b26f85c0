package media_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/plans"
)

// broadcast has a publisher send for a minute, which the engine records, and leave.
func (s *studio) broadcast(show answer, connection string) {
	s.t.Helper()
	began := s.now
	s.publish(show, connection, 0, "H264")
	s.step()
	s.now = s.now.Add(time.Minute)
	s.record(show, began, film)
	s.leave(show)
	s.step()
}

// What the storage has no room for is not recorded, and its owner is told.
func TestARecordingThatHasNoRoomFails(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(c *media.Config) { c.Plans = plans.Table{"": {StorageBytes: int64(len(film)) + 10}} })
	vod := s.upload()
	show := s.create(object{"recording": object{"enabled": true}})
	s.broadcast(show, "c1")
	s.now = s.now.Add(5 * time.Second)
	s.step()
	list := s.do("GET", "/v1/recordings?stream_id="+show.text("id"), nil).want(200)
	if list.text("data.0.status") != "failed" || list.text("data.0.error.code") != "BILLING_002" || !strings.HasSuffix(s.eventTypes(), "recording.failed") {
		t.Errorf("%s\n%s", list.raw, s.eventTypes())
	}
	s.wantFiles(1)
	s.retries(show.text("id"), vod)
}

// retries tries a recording for which there is no room again, with and without room.
func (s *studio) retries(stream, vod string) {
	s.t.Helper()
	failed := func() (answer, any) {
		events := s.events()
		return s.do("GET", "/v1/recordings?stream_id="+stream, nil).want(200), events[len(events)-1].Data["retry_available"]
	}
	list, available := failed()
	id := list.text("data.0.id")
	if until, err := time.Parse(time.RFC3339, list.text("data.0.error.retry_until")); err != nil || until.Sub(s.now) < 23*time.Hour || available != true {
		s.t.Errorf("%s, %v, %v", list.raw, available, err)
	}
	if got := s.do("POST", "/v1/recordings/"+id+"/retry", nil).want(202); got.text("status") != "processing" || got.get("error") != nil {
		s.t.Errorf("%s", got.raw)
	}
	s.do("POST", "/v1/recordings/"+id+"/retry", nil).wantError(409, "conflict")
	s.step()
	if list, available := failed(); list.text("data.0.status") != "failed" || available != true || strings.Count(s.eventTypes(), "recording.failed") != 2 {
		s.t.Errorf("still without room: %s, %v", list.raw, available)
	}
	s.do("DELETE", "/v1/vod/"+vod, nil).want(204)
	s.do("POST", "/v1/recordings/"+id+"/retry", nil).want(202)
	s.step()
	if got := s.do("GET", "/v1/recordings/"+id, nil).want(200); got.text("status") != "ready" || !strings.Contains(s.eventTypes(), "recording.failed recording.completed recording.ready") {
		s.t.Errorf("%s\n%s", got.raw, s.eventTypes())
	}
	s.do("POST", "/v1/recordings/"+id+"/retry", nil).wantError(409, "conflict")
	s.wantKept(0)
	s.wantFiles(1)
}

// wantKept fails unless the bytes of so many recordings are kept.
func (s *studio) wantKept(n int) {
	s.t.Helper()
	if kept, _ := filepath.Glob(filepath.Join(s.watcher.Dir, "kept", "*")); len(kept) != n {
		s.t.Errorf("kept: %v, want %d", kept, n)
	}
}

// What nobody tries again is kept for a day, and of one owner ten at most.
func TestWhatIsKeptOfRecordingsEnds(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(c *media.Config) { c.Plans = plans.Table{"": {FileBytes: 10}} })
	show := s.create(object{"recording": object{"enabled": true}})
	for i := range 11 {
		s.broadcast(show, fmt.Sprint("c", i))
		s.now = s.now.Add(5 * time.Second)
		s.step()
	}
	s.wantKept(10)
	events := s.events()
	if last := events[len(events)-1]; last.Type != "recording.failed" || last.ErrorCode != "STORAGE_001" || last.Data["retry_available"] != false {
		t.Errorf("%+v", last)
	}
	list := s.do("GET", "/v1/recordings", nil).want(200)
	if list.get("data.0.error.retry_until") != nil || list.get("data.1.error.retry_until") == nil {
		t.Errorf("%s", list.raw)
	}
	s.do("POST", "/v1/recordings/"+list.text("data.0.id")+"/retry", nil).wantError(409, "conflict")
	s.do("DELETE", "/v1/recordings/"+list.text("data.1.id"), nil).want(204)
	s.step()
	s.wantKept(9)
	s.now = s.now.Add(25 * time.Hour)
	s.do("POST", "/v1/recordings/"+list.text("data.2.id")+"/retry", nil).wantError(409, "conflict")
	s.step()
	s.wantKept(0)
}

// Killed between moving a file and storing it, the watcher goes on from there.
func TestARecordingThatIsKeptIsStored(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{"recording": object{"enabled": true}})
	s.broadcast(show, "c1")
	id := s.do("GET", "/v1/recordings", nil).want(200).text("data.0.id")
	found, _ := filepath.Glob(filepath.Join(s.watcher.Dir, "live", "*", "*"))
	if err := os.MkdirAll(filepath.Join(s.watcher.Dir, "kept"), 0o700); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.Rename(found[0], filepath.Join(s.watcher.Dir, "kept", id+".mp4")); err != nil {
		t.Fatal(err)
	}
	s.do("DELETE", "/v1/streams/"+show.text("id"), nil).want(204)
	s.step()
	if got := s.do("GET", "/v1/recordings/"+id, nil).want(200); got.text("status") != "ready" {
		t.Errorf("%s", got.raw)
	}
	s.wantKept(0)
}

func TestARecordingArrivesWhenItsPublisherHasGone(t *testing.T) {
	t.Parallel()
	s := newStudio(t, withFFmpeg(t))
	show := s.create(object{"recording": object{"enabled": true}})
	s.broadcast(show, "c1") // the engine may still be writing
	list := s.do("GET", "/v1/recordings?stream_id="+show.text("id"), nil).want(200)
	id := list.text("data.0.id")
	if list.text("data.0.status") != "processing" || s.events()[1].Data["recording_id"] != id {
		t.Errorf("%s\n%+v", list.raw, s.events())
	}
	clip := s.do("POST", "/v1/clips", object{"stream_id": show.text("id"), "start": 1, "duration": 3}).want(201).text("id")
	s.now = s.now.Add(5 * time.Second)
	s.step()
	done := s.do("GET", "/v1/recordings/"+id, nil).want(200)
	if done.text("status") != "ready" || done.text("resolution") != "1280x720" || done.text("stream_id") != show.text("id") {
		t.Errorf("%s", done.raw)
	}
	if got := s.fetch(done.text("playback_url")).want(200); len(got.raw) != len(film) {
		t.Errorf("%d bytes", len(got.raw))
	}
	if c := s.do("GET", "/v1/clips/"+clip, nil).want(200); c.text("status") != "processing" || c.get("duration") != 3.0 || c.text("stream_id") != show.text("id") {
		t.Errorf("%s", c.raw)
	}
	if s.eventTypes() != "stream.started stream.ended recording.completed recording.ready" {
		t.Fatal(s.eventTypes())
	}
	if e := s.events()[2]; e.RecordingID != id || e.Data["resolution"] != "1280x720" || e.Data["duration"] != 60.0 {
		t.Errorf("%+v", e)
	}
	if left, _ := filepath.Glob(filepath.Join(s.watcher.Dir, "live", "*", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.do("DELETE", "/v1/recordings/"+id, nil).want(204)
}

func TestRecordingsWithoutAGoodFileFail(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	empty, broken := s.create(object{"recording": object{"enabled": true}}), s.create(object{"recording": object{"enabled": true}})
	plain := s.create(object{})
	s.publish(empty, "c1", 0)
	s.publish(broken, "c2", 0)
	s.step()
	s.record(broken, s.now, film[:40])
	s.record(plain, s.now, film)
	s.paths = map[string]object{}
	s.now = s.now.Add(time.Minute)
	s.step()
	for _, stream := range []answer{empty, broken} {
		got := s.do("GET", "/v1/recordings?stream_id="+stream.text("id"), nil).want(200)
		if got.text("data.0.status") != "failed" || got.text("data.0.error.code") != "STORAGE_002" {
			t.Errorf("%s", got.raw)
		}
	}
	if strings.Count(s.eventTypes(), "recording.failed") != 2 {
		t.Error(s.eventTypes())
	}
	s.wantFiles(0)
}

func TestTheRecordingOfADeletedStreamEnds(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	show := s.create(object{"recording": object{"enabled": true}})
	s.publish(show, "c1", 0)
	s.step()
	s.record(show, s.now, film)
	s.now = s.now.Add(time.Minute)
	s.do("DELETE", "/v1/streams/"+show.text("id"), nil).want(204)
	s.leave(show)
	s.step()
	got := s.do("GET", "/v1/recordings", nil).want(200)
	if got.text("data.0.status") != "failed" {
		t.Errorf("%s", got.raw)
	}
	if left, _ := filepath.Glob(filepath.Join(s.watcher.Dir, "live", "*", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
