package transports

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Supervisor works on the links beside the media engine. Links are rows, and it begins
// each of them anew when it is started: whatever ends it, nothing that was asked for
// is lost.
type Supervisor struct {
	DB       postgres.DB
	Streams  streams.Service
	Settings Settings
	FFmpeg   ffmpeg.Tool
	RTSP     string // host:port of the engine's RTSP, on this machine
	Log      *slog.Logger
	Now      func() time.Time
	// Again is the pause after a first failure; it doubles up to thirty times that. 0: a
	// second.
	Again time.Duration

	mu      sync.Mutex
	workers map[string]*worker // by link
	kicked  map[string]bool    // playback ids of publishers that were closed for a rule
	heard   catalogue
	swept   time.Time // when sources were forgotten last
}

// wanted is a link to work on.
type wanted struct {
	ID         string `db:"id"`
	Owner      string `db:"owner"`
	StreamID   string `db:"stream_id"`
	Transport  string `db:"transport"`
	Direction  string `db:"direction"`
	Name       string `db:"name"`
	Address    string `db:"address"`
	Spec       Spec   `db:"spec"`
	PlaybackID string `db:"playback_id"`
}

// report is what is said of a link.
type report struct {
	state, message string
	stats          map[string]any
	described      string // what receivers of an output need
}

// look is the time between two looks at the rows.
const look = time.Second

// repeat is how often a state is written that has not changed; see silence.
const repeat = 5 * time.Second

// Run works until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	set(&s.Again, time.Second)
	s.workers, s.kicked = map[string]*worker{}, map[string]bool{}
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range Names {
		if s.Settings.Engine(name) != "" {
			all.Go(func() { s.discover(ctx, name) })
		}
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := s.step(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "links are out of step", "cause", err)
		}
		select {
		case <-ctx.Done():
			s.end()
			return
		case <-ticker.C:
		}
	}
}

// step begins what is new among the rows, ends what is gone, and stores what is said.
func (s *Supervisor) step(ctx context.Context) error {
	rows, err := s.links(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	left := map[string]*worker{}
	for id, w := range s.workers {
		left[id] = w
	}
	for _, row := range rows {
		delete(left, row.ID)
		if s.workers[row.ID] == nil {
			s.begin(ctx, row)
		}
	}
	var stale []*worker
	for id, w := range left {
		delete(s.workers, id)
		stale = append(stale, w)
	}
	s.mu.Unlock()
	for _, w := range stale {
		w.cancel()
	}
	for _, w := range stale {
		<-w.done
	}
	return errors.Join(s.tell(ctx), s.flush(ctx))
}

// begin starts a worker. s.mu is held.
func (s *Supervisor) begin(ctx context.Context, row wanted) {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{Supervisor: s, wanted: row, password: ident.NewSecret("link").Text, cancel: cancel, done: make(chan struct{}), said: report{state: Waiting}}
	s.workers[row.ID] = w
	go func() { defer close(w.done); w.run(ctx) }()
}

// end ends all workers.
func (s *Supervisor) end() {
	for _, w := range s.workers {
		w.cancel()
		<-w.done
	}
}

// tell stores what has changed, and now and then what has not.
func (s *Supervisor) tell(ctx context.Context) error {
	now := s.Now()
	var errs error
	s.mu.Lock()
	due := map[*worker]report{}
	for _, w := range s.workers {
		same := w.said.state == w.stored.state && w.said.message == w.stored.message && w.said.described == w.stored.described
		if !same || now.Sub(w.storedAt) >= repeat {
			due[w] = w.said
		}
	}
	s.mu.Unlock()
	for w, r := range due {
		if err := s.store(ctx, w.ID, r); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		w.stored, w.storedAt = r, now
	}
	return errs
}

// Kicked is told of publishers that were closed because their stream was stopped, or
// they broke a rule: a source of that stream waits for an action start.
func (s *Supervisor) Kicked(playbackID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if w.Direction == In && w.PlaybackID == playbackID {
			s.kicked[playbackID] = true
		}
	}
}

// Allows reports whether the engine is to let a link publish to a path, or read it:
// user is the link's id.
func (s *Supervisor) Allows(user, password, action, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[user]
	if w == nil || subtle.ConstantTimeCompare([]byte(password), []byte(w.password)) != 1 || path != w.path() {
		return false
	}
	return action == "publish" && w.Direction == In && w.admitted || action == "read" && w.Direction == Out
}
