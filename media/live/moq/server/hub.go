package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/rtsp"
)

// linger is how long a stream is still read when nobody subscribes to it: players
// take the catalog first, and then the tracks.
const linger = 5 * time.Second

// hub reads each stream that somebody subscribes to once from the engine, however
// many there are.
type hub struct {
	engine rtsp.Engine
	log    *slog.Logger

	mu      sync.Mutex
	sources map[string]*source // by playback id
}

// source is one stream that is read.
type source struct {
	users  int
	cancel context.CancelFunc
	known  chan struct{} // closed when live or err is set
	live   *broadcast.Broadcast
	err    error
}

func newHub(e rtsp.Engine, log *slog.Logger) *hub {
	return &hub{engine: e, log: log, sources: map[string]*source{}}
}

// join returns what is live of a stream as soon as it is known. leave must be called
// once. It fails with rtsp.ErrOff when nobody publishes it.
func (h *hub) join(ctx context.Context, id string) (b *broadcast.Broadcast, leave func(), err error) {
	s := h.enter(id)
	leave = sync.OnceFunc(func() { time.AfterFunc(linger, func() { h.leave(id, s) }) })
	select {
	case <-s.known:
		err = s.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return s.live, leave, nil
}

// enter counts a user of a source, which it begins if need be.
func (h *hub) enter(id string) *source {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sources[id]
	if s == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s = &source{cancel: cancel, known: make(chan struct{})}
		h.sources[id] = s
		go h.read(ctx, id, s)
	}
	s.users++
	return s
}

// leave takes a user back; without any, the source ends, and whoever comes begins
// another one.
func (h *hub) leave(id string, s *source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.users--; s.users == 0 {
		s.cancel()
		h.forget(id, s)
	}
}

// forget hands s out no more. h.mu is held.
func (h *hub) forget(id string, s *source) {
	if h.sources[id] == s {
		delete(h.sources, id)
	}
}

// read reads a source to its end. Whoever comes then begins another one.
func (h *hub) read(ctx context.Context, id string, s *source) {
	err := h.engine.Read(ctx, id, func(b *broadcast.Broadcast) {
		s.live = b
		close(s.known)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(id, s)
	if s.live == nil {
		s.err = errors.Join(errEnded, err)
		close(s.known)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, rtsp.ErrOff) {
		h.log.Info("live stream not read any more", "playback_id", id, "cause", err)
	}
}

// errEnded says that a stream was not live any more before it was known.
var errEnded = errors.New("the stream is not live")
