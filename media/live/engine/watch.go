package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// Watcher keeps streams in step with the engine. One runs beside each engine.
type Watcher struct {
	API     API
	Streams streams.Service
	Assets  assets.Service
	Views   views.Counter
	Plans   plans.Source
	Reader  Reader // as which the product reads
	Dir     string // where the engine records
	Log     *slog.Logger
	Now     func() time.Time
	// Kicked, if not nil, is told of publishers that are closed because of a rule or a
	// stop, by playback id.
	Kicked func(playbackID string)

	known map[string]publisher // by the engine's id of the connection
}

// Step looks once: streams with a publisher go live, those whose publisher has
// gone end and get their recording, and publishers who break a rule, or whose
// stream was stopped, are closed. Those who watch are counted.
func (w *Watcher) Step(ctx context.Context) error {
	return errors.Join(w.Views.Tally(ctx), w.look(ctx))
}

// look is Step without the viewers.
func (w *Watcher) look(ctx context.Context) error {
	paths, err := w.API.Ready(ctx)
	if err != nil {
		return err
	}
	ready, known := map[string]bool{}, map[string]publisher{}
	var errs error // of one stream, which must not keep the others waiting
	for _, p := range paths {
		id := strings.TrimPrefix(p.Name, folder)
		ready[id] = true
		k, ok := w.known[p.Source.ID]
		if !ok {
			k = publisher{seen: w.Now(), bytes: p.Received}
		}
		k, err := w.visit(ctx, id, p, k)
		known[p.Source.ID] = k
		errs = errors.Join(errs, err)
	}
	w.known = known
	return errors.Join(errs, w.end(ctx, ready), w.collect(ctx, ready))
}

// visit takes care of one publisher.
func (w *Watcher) visit(ctx context.Context, id string, p Path, k publisher) (publisher, error) {
	s, err := streams.ByPlayback(ctx, w.Streams.DB, id)
	if apierror.Code(err) == decision.NotFound {
		return k, w.kick(ctx, p) // deleted meanwhile
	}
	if err != nil {
		return k, err
	}
	if k.live && !s.Status.OnAir() {
		return k, w.kick(ctx, p) // stopped by an action
	}
	k.live = k.live && s.Status != streams.Starting // else stopped and started again meanwhile
	if code := violation(p, k, limitOf(s.BitrateKbps, w.Plans.Of(s.Plan).BitrateKbps), w.Now()); code != "" {
		return w.refuse(ctx, s, p, k, code)
	}
	if k.live {
		return k, nil
	}
	err = w.Streams.Published(ctx, s)
	if code := apierror.Code(err); code == decision.Stream003 {
		return w.refuse(ctx, s, p, k, code)
	}
	k.live = err == nil
	return k, err
}

// refuse tells the account why, once, and closes the publisher. It is told even if
// the engine does not answer: the next step closes it then.
func (w *Watcher) refuse(ctx context.Context, s streams.Stream, p Path, k publisher, code decision.Code) (publisher, error) {
	w.Log.InfoContext(ctx, "publisher closed", "stream", s.ID, "code", code)
	var err error
	if !k.told {
		err = w.Streams.EmitError(ctx, s, code)
		k.told = err == nil
	}
	return k, errors.Join(err, w.kick(ctx, p))
}

// kick closes a publisher.
func (w *Watcher) kick(ctx context.Context, p Path) error {
	if w.Kicked != nil {
		w.Kicked(strings.TrimPrefix(p.Name, folder))
	}
	return w.API.Kick(ctx, p)
}

// end ends the sessions whose publisher is not there any more.
func (w *Watcher) end(ctx context.Context, ready map[string]bool) error {
	open, err := w.Streams.Publishing(ctx)
	if err != nil {
		return err
	}
	for _, s := range open {
		if !ready[s.PlaybackID] {
			err = errors.Join(err, w.Streams.Unpublished(ctx, s))
		}
	}
	return err
}

// Run steps at every tick until ctx ends. An engine that does not answer is asked
// again at the next one.
func (w *Watcher) Run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if err := w.Step(ctx); err != nil && ctx.Err() == nil {
				w.Log.WarnContext(ctx, "media engine out of step", "cause", err)
			}
		}
	}
}
