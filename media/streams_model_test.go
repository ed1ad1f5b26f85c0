package media_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// model is what a stream's life looks like from outside: which actions it takes,
// and which events and sessions come of them.
type model struct {
	status   string
	events   []string
	sessions int
}

// act returns the status of the answer, and moves the model on.
func (m *model) act(action string) int {
	onAir := m.status == "live" || m.status == "paused"
	switch {
	case (action == "pause" || action == "resume") && !onAir:
		return 409
	case action == "pause":
		m.status = "paused"
	case action == "resume":
		m.status = "live"
	case action == "start":
		if !onAir {
			m.events = append(m.events, "stream.started")
			m.sessions++
		}
		m.status = "live"
	case action == "stop" && onAir:
		m.events = append(m.events, "stream.ended")
		m.status = "ended"
	}
	return 200
}

// Over random lives, the product and the model never disagree.
func TestRandomLivesFollowTheModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	random := rand.New(rand.NewPCG(7, 11))
	actions := []string{"start", "stop", "pause", "resume"}
	for range 5 {
		m := &model{status: "idle"}
		before := len(b.events())
		id := b.stream("Show")
		for range 20 {
			action := actions[random.IntN(len(actions))]
			b.now = b.now.Add(time.Duration(random.IntN(100)) * time.Second)
			if got, want := b.act(id, action).status, m.act(action); got != want {
				t.Fatalf("%s in %s: status %d, want %d", action, m.status, got, want)
			}
		}
		if got := b.do("GET", "/v1/streams/"+id, nil).want(200).text("status"); got != m.status {
			t.Errorf("%s, want %s", got, m.status)
		}
		var types []string
		for _, e := range b.events()[before:] {
			types = append(types, e.Type)
		}
		if strings.Join(types, " ") != strings.Join(m.events, " ") {
			t.Errorf("events %v, want %v", types, m.events)
		}
		b.wantSessions(id, m.sessions, m.status)
		b.do("DELETE", "/v1/streams/"+id, nil).want(204)
	}
}

// wantSessions fails unless the stream has so many sessions, of which the last is
// open while it is on air, and none ends before it begins.
func (b *bundle) wantSessions(stream string, n int, status string) {
	b.t.Helper()
	var total, open int
	err := b.pool.QueryRow(b.t.Context(), `SELECT count(*), count(*) FILTER (WHERE ended_at IS NULL) FROM media_sessions WHERE stream_id = $1`, stream).Scan(&total, &open)
	wantOpen := 0
	if status == "live" || status == "paused" {
		wantOpen = 1
	}
	if err != nil || total != n || open != wantOpen {
		b.t.Errorf("%d sessions, %d open; want %d, %d (%v)", total, open, n, wantOpen, err)
	}
}

// Of many commands at once, each sees what the one before it has done.
func TestCommandsAtOnceMakeOneSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Show")
	changed := make(chan bool)
	for range 8 {
		go func() { changed <- b.act(id, "start").get("changed") == true }()
	}
	n := 0
	for range 8 {
		if <-changed {
			n++
		}
	}
	if n != 1 || b.eventTypes() != "stream.started" {
		t.Errorf("%d commands changed something; events: %s", n, b.eventTypes())
	}
	b.wantSessions(id, 1, "live")
}

// An event that cannot be stored takes its change back.
func TestWithoutItsEventNothingHappens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream("Show")
	if _, err := b.pool.Exec(t.Context(), `ALTER TABLE test_events RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	b.act(id, "start").wantError(500, "internal")
	b.do("DELETE", "/v1/streams/"+id, nil).wantError(500, "internal")
	if got := b.do("GET", "/v1/streams/"+id, nil).want(200).text("status"); got != "idle" {
		t.Errorf("%s", got)
	}
	b.wantSessions(id, 0, "idle")
}
