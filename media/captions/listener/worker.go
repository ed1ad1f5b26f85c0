package listener

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/live/sound"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/pause"
)

// worker listens to one stream in one language.
type worker struct {
	*Supervisor
	wanted
	password string // opens the engine for this worker, as long as it is there
	life     context.Context
	cancel   context.CancelFunc

	said     report
	stored   report
	storedAt time.Time
}

// report is what is said of a worker.
type report struct{ state, message string }

// path is the stream's in the engine.
func (w *worker) path() string { return "live/" + w.PlaybackID }

// say keeps a state for the next step to store.
func (w *worker) say(state, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = report{state, message}
}

// run listens until ctx ends: again where the engine has ended, or there is no sound yet.
func (w *worker) run(ctx context.Context) {
	again := w.Again
	for ctx.Err() == nil {
		began := time.Now()
		err := w.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, errFull):
			w.say(onair.Waiting, "As many streams are listened to as the account may have here, or as there are places.")
			again = w.Again
		case errors.Is(err, sound.ErrSilent):
			w.say(onair.Waiting, "The stream has no sound.")
			again = w.Again
		default:
			w.say(onair.Failed, "The sound of the stream cannot be read; it is tried again.")
			w.Log.InfoContext(ctx, "captions on air: listening failed; trying again", "stream", w.StreamID, "cause", err)
		}
		if time.Since(began) > time.Minute {
			again = w.Again
		}
		pause.For(ctx, again)
		again = min(2*again, 30*w.Again)
	}
}

// errFull says that there is no place.
var errFull = errors.New("there is no place to listen")

// listen listens once.
func (w *worker) listen(ctx context.Context) error {
	leave, ok := w.Places.TryEnter(w.Owner)
	if !ok {
		return errFull
	}
	defer leave()
	q := &queue{some: make(chan struct{}, 1)}
	var writing sync.WaitGroup
	within, cancel := context.WithCancel(w.life)
	writing.Go(func() { w.write(within, q) })
	var c clock
	cut := newCutter(func(u utterance) {
		if q.push(c.at(u)) {
			w.Log.InfoContext(ctx, "captions on air: the engine does not keep up; an utterance is left out", "stream", w.StreamID)
		}
	})
	point := sound.Point{Host: w.RTSP, Path: w.path(), User: user, Password: w.password}
	err := sound.Subscribe(ctx, w.FFmpeg, point, 1, func(frames []float32) {
		if c.count == 0 {
			w.say(onair.Listening, "")
		}
		c.heard(w.Store.Now(), len(frames))
		cut.write(frames)
	})
	cut.flush()
	q.close()
	late := time.AfterFunc(rest, cancel)
	defer late.Stop()
	writing.Wait()
	cancel()
	return err
}

// rest is how long what was heard last may take to be written.
const rest = 20 * time.Second

// clock says when sound was heard, by the clock of the wall: that of its samples from the
// earliest moment at which they can have begun. Sound that is held up moves nothing,
// unless it stays away for a second.
type clock struct {
	begun time.Time
	count int64 // of frames
}

// slack is how much later than it should be sound may come.
const slack = time.Second

// heard counts frames that have come now.
func (c *clock) heard(now time.Time, frames int) {
	c.count += int64(frames)
	begun := now.Add(-time.Duration(c.count/sound.Rate)*time.Second - time.Duration(c.count%sound.Rate)*time.Second/sound.Rate)
	if c.begun.IsZero() || begun.Before(c.begun) || begun.Sub(c.begun) > slack {
		c.begun = begun
	}
}

// at gives an utterance its time.
func (c *clock) at(u utterance) dated { return dated{c.begun.Add(u.at), u.samples} }

// dated is an utterance that has a time.
type dated struct {
	at      time.Time
	samples []int16
}

// waiting is how many utterances may wait for the engine: at most 18 seconds of sound.
const waiting = 3

// queue holds the utterances that wait. Its oldest gives way, so that what is written is
// never older than they are.
type queue struct {
	mu     sync.Mutex
	list   []dated
	closed bool
	some   chan struct{} // has one when there may be some
}

// push adds an utterance, and reports whether another was dropped for it.
func (q *queue) push(u dated) (dropped bool) {
	q.mu.Lock()
	if dropped = len(q.list) == waiting; dropped {
		q.list = q.list[1:]
	}
	q.list = append(q.list, u)
	q.mu.Unlock()
	q.wake()
	return dropped
}

// wake has pop look again.
func (q *queue) wake() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// close says that there will be no more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
}

// pop takes what waits, as one, when there is something; false: there will be nothing, or
// ctx has ended.
func (q *queue) pop(ctx context.Context) (u dated, ok bool) {
	for {
		q.mu.Lock()
		if len(q.list) > 0 {
			u, q.list = join(q.list)
			q.mu.Unlock()
			return u, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return u, false
		}
		select {
		case <-ctx.Done():
			return u, false
		case <-q.some:
		}
	}
}

// most is how many samples are given to the engine at once.
const most = 20 * transcript.Rate

// join makes one of utterances, as many of the first as fit: to begin costs an engine more
// than a second of sound. list is not empty.
func join(list []dated) (one dated, rest []dated) {
	one, rest = list[0], list[1:]
	for len(rest) > 0 {
		next := rest[0]
		begin := max(0, int(next.at.Sub(one.at)*transcript.Rate/time.Second))
		end := begin + len(next.samples)
		if end > most {
			break
		}
		samples := make([]int16, max(end, len(one.samples)))
		copy(samples, one.samples)
		copy(samples[begin:], next.samples)
		one.samples, rest = samples, rest[1:]
	}
	return one, rest
}

// write has the engine write down what waits, one utterance after the other, in the
// account's turn.
func (w *worker) write(ctx context.Context, q *queue) {
	for {
		u, ok := q.pop(ctx)
		if !ok {
			return
		}
		err := w.writeOne(ctx, u)
		switch {
		case ctx.Err() != nil:
			return
		case apierror.Code(err) == decision.NotFound: // the track is gone; the next step ends this
		case err != nil:
			w.say(onair.Failed, words(err))
			w.Log.InfoContext(ctx, "captions on air: an utterance was not written", "stream", w.StreamID, "cause", err)
		default:
			w.say(onair.Listening, "")
		}
	}
}

// writeOne writes down one utterance.
func (w *worker) writeOne(ctx context.Context, u dated) error {
	var said transcript.Transcript
	err := w.Product.Do(ctx, w.Owner, func(ctx context.Context, e transcribe.Engine, _ engines.Setting) error {
		part, err := e.Transcribe(ctx, u.samples, w.Language)
		if err == nil {
			said = transcript.Transcript{}
			said.Add(part, 0)
		}
		return err
	})
	if err != nil || len(said.Words) == 0 {
		return err
	}
	_, err = w.Store.Add(ctx, w.StreamID, w.Language, onair.Utterance{Session: w.Session, SpokenAt: u.at, Text: said})
	return err
}

// words are what an owner is told of an error.
func words(err error) string {
	if e, ok := errors.AsType[*apierror.Error](err); ok && e.Message != "" && e.Code != decision.Internal {
		return decision.Cut(e.Message, 200)
	}
	return "The engine for speech has failed; the next utterance is tried again."
}
