// Package listener captions what is said in streams on air: it takes their sound from the
// media engine, cuts it into utterances, has the engine for speech in force write them
// down, and stores what was said.
//
// It never delays pictures, which do not pass here. What it wants to do is rows, and it
// begins anew where it was stopped: whatever ends it, what was heard before is kept.
package listener

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Places is how many languages of streams are listened to at once by one process. An
// account has a quarter of it, at least one; what is beyond waits.
const Places = 16

// Supervisor listens to the streams of one media engine. Every field but Again is
// required.
type Supervisor struct {
	Store   onair.Store
	Keeper  Keeper
	Product *engines.Product[transcribe.Engine]
	FFmpeg  ffmpeg.Tool
	Places  *fairshare.Pool // by owner
	RTSP    string          // host:port of the engine's RTSP, on this machine
	Log     *slog.Logger
	// Again is the pause after a first failure; it doubles up to thirty times that. 0: a
	// second.
	Again time.Duration

	mu      sync.Mutex
	workers map[string]*worker // by key
	ending  sync.WaitGroup     // of those that write down what they have heard last
	busy    map[string]int     // those, and workers, by session
}

// wanted is a language of a stream that is on air.
type wanted struct {
	StreamID   string `db:"stream_id"`
	Language   string `db:"language"`
	Owner      string `db:"owner"`
	PlaybackID string `db:"playback_id"`
	Session    string `db:"session"`
}

// key names it; another broadcast is another one.
func (w wanted) key() string { return w.Session + " " + w.Language }

// look is the time between two looks at the rows, and repeat how often a state is written
// that has not changed.
const (
	look   = time.Second
	repeat = 5 * time.Second
)

// Run works until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	if s.Again == 0 {
		s.Again = time.Second
	}
	s.mu.Lock()
	s.workers, s.busy = map[string]*worker{}, map[string]int{}
	s.mu.Unlock()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := s.step(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "captions on air are out of step", "cause", err)
		}
		select {
		case <-ctx.Done():
			s.end(nil)
			s.ending.Wait()
			return
		case <-ticker.C:
		}
	}
}

// step begins to listen where that is wanted, and ends it where it is not any more, keeps
// what is left of broadcasts that have ended, and stores the states.
func (s *Supervisor) step(ctx context.Context) error {
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	s.end(rows)
	for _, row := range rows {
		s.begin(ctx, row)
	}
	return errors.Join(s.tell(ctx), s.Keeper.keep(ctx, s.listening))
}

// rows are the languages that are wanted now.
func (s *Supervisor) rows(ctx context.Context) ([]wanted, error) {
	rows, _ := s.Store.DB.Query(ctx, `SELECT c.stream_id, c.language, t.owner, t.playback_id, b.id AS session
		FROM media_live_captions c JOIN media_streams t ON t.id = c.stream_id JOIN media_sessions b ON b.stream_id = t.id AND b.ended_at IS NULL AND b.engine
		WHERE c.active AND t.status = 'live'`)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[wanted])
	if err != nil {
		return nil, fmt.Errorf("read captions that are wanted: %w", err)
	}
	return found, nil
}

// end ends the workers of what is not among rows; they write down what they have heard.
func (s *Supervisor) end(rows []wanted) {
	keys := map[string]bool{}
	for _, r := range rows {
		keys[r.key()] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, w := range s.workers {
		if !keys[key] {
			delete(s.workers, key)
			w.cancel()
		}
	}
}

// listening reports whether something of a session is still to be written.
func (s *Supervisor) listening(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[session] > 0
}

// begin starts a worker, unless there is one.
func (s *Supervisor) begin(ctx context.Context, row wanted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers[row.key()] != nil {
		return
	}
	within, cancel := context.WithCancel(ctx)
	w := &worker{Supervisor: s, wanted: row, password: ident.NewSecret("link").Text, life: ctx, cancel: cancel, said: report{onair.Waiting, ""}}
	s.workers[row.key()] = w
	s.busy[row.Session]++
	s.ending.Go(func() {
		w.run(within)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy[row.Session]--; s.busy[row.Session] == 0 {
			delete(s.busy, row.Session)
		}
	})
}

// tell stores the states that have changed, and now and then those that have not.
func (s *Supervisor) tell(ctx context.Context) error {
	now := s.Store.Now()
	due := map[*worker]report{}
	s.mu.Lock()
	for _, w := range s.workers {
		if w.said != w.stored || now.Sub(w.storedAt) >= repeat {
			due[w] = w.said
		}
	}
	s.mu.Unlock()
	var errs error
	for w, r := range due {
		if err := s.Store.Tell(ctx, w.StreamID, w.Language, r.state, r.message); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		w.stored, w.storedAt = r, now // read by nobody else
	}
	return errs
}

// user is how listeners call themselves at the media engine.
const user = "captions"

// Allows reports whether the engine is to let a listener read a path.
func (s *Supervisor) Allows(name, password, action, path string) bool {
	if name != user || action != "read" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if w.path() == path && subtle.ConstantTimeCompare([]byte(password), []byte(w.password)) == 1 {
			return true
		}
	}
	return false
}
