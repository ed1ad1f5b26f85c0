package transports

import (
	"context"
	"errors"
	"reflect"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/sound"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/pause"
)

// worker works on one link.
type worker struct {
	*Supervisor
	wanted
	password string // opens the engine for this link, as long as it is worked on
	cancel   context.CancelFunc
	done     chan struct{}

	said     report
	stored   report
	storedAt time.Time
	admitted bool // may publish
}

// path is the stream's in the engine.
func (w *worker) path() string { return "live/" + w.PlaybackID }

// point is where the engine has the stream.
func (w *worker) point() sound.Point {
	return sound.Point{Host: w.RTSP, Path: w.path(), User: w.ID, Password: w.password}
}

// say keeps a state for the next step to store.
func (w *worker) say(state, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.state, w.said.message = state, clean(message)
}

// count keeps figures for the next step to store.
func (w *worker) count(stats map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !reflect.DeepEqual(w.said.stats, stats) {
		w.said.stats = stats
	}
}

// describe keeps what receivers need for the next step to store.
func (w *worker) describe(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.described = text
}

// run works on the link until ctx ends.
func (w *worker) run(ctx context.Context) {
	wait := w.Again
	for ctx.Err() == nil {
		began := time.Now()
		err := w.work(ctx)
		w.admit(false)
		if ctx.Err() != nil {
			return
		}
		if w.takeKick() {
			w.hold(ctx)
			wait = w.Again
			continue
		}
		if time.Since(began) > time.Minute || quietly(err) {
			wait = w.Again
		}
		w.explain(ctx, err)
		pause.For(ctx, wait)
		wait = min(2*wait, 30*w.Again)
	}
}

// explain says why a link does not work, in words for its owner.
func (w *worker) explain(ctx context.Context, err error) {
	switch {
	case quietly(err):
		w.say(Waiting, message(err))
	default:
		w.say(Failed, message(err))
		w.Log.InfoContext(ctx, "link failed; trying again", "link", w.ID, "transport", w.Transport, "cause", err)
	}
}

// quietly reports whether a link ended because nothing comes, which is no failure.
func quietly(err error) bool {
	return err == nil || errors.Is(err, errIdle) || errors.Is(err, sound.ErrSilent)
}

// message is what an owner is told of an error.
func message(err error) string {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return string(e.Code) + ": " + decision.Lookup(e.Code).Message
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// work works on the link once, until it fails or ctx ends.
func (w *worker) work(ctx context.Context) error {
	switch {
	case w.Settings.Engine(w.Transport) == "":
		return errors.New("the transport is off here")
	case w.Settings.Engine(w.Transport) == External:
		return w.bridge(ctx)
	case w.Transport == Dante && w.Direction == In:
		return w.flowIn(ctx)
	case w.Transport == Dante:
		return w.flowOut(ctx)
	case w.Direction == In:
		return w.omtIn(ctx)
	}
	return w.omtOut(ctx)
}

// enter asks whether the stream may go on air, and lets the link publish then.
func (w *worker) enter(ctx context.Context) error {
	s, err := streams.ByID(ctx, w.DB, w.StreamID)
	if err != nil {
		return err
	}
	code, err := w.Streams.Room(ctx, s)
	if err == nil && code != "" {
		err = &apierror.Error{Code: code}
	}
	if err != nil {
		return err
	}
	w.takeKick() // what was said of a publisher of before
	w.admit(true)
	return nil
}

// admit lets the link publish, or no longer.
func (w *worker) admit(may bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admitted = may
}

// takeKick reports whether the link's publisher was closed for a rule.
func (w *worker) takeKick() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.kicked[w.PlaybackID]
	delete(w.kicked, w.PlaybackID)
	return was
}

// settle is how long a stream may take to be off air after its publisher was closed.
const settle = 10 * look

// hold waits until somebody starts the stream, whose publisher was closed.
func (w *worker) hold(ctx context.Context) {
	w.say(Stopped, "The stream was stopped, or its plan does not allow what was sent. The action start lets its source go on.")
	off := false
	for began := time.Now(); ctx.Err() == nil; pause.For(ctx, look) {
		s, err := streams.ByID(ctx, w.DB, w.StreamID)
		if err != nil {
			continue
		}
		off = off || !onAir(s.Status) || time.Since(began) > settle
		if off && onAir(s.Status) {
			return
		}
	}
}
