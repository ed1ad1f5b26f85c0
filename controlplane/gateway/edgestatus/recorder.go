package edgestatus

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/gateway/xds"
)

// Source is the xDS server of a replica, as far as the recorder goes.
type Source interface {
	// Changed returns a channel that closes at the next change of Edges.
	Changed() <-chan struct{}
	Edges() []xds.EdgeStatus
}

// Recorder writes what one replica sees of its edges: at once what changed, and
// one statement for all of them at each beat.
type Recorder struct {
	Store   Store
	Source  Source
	Replica string // name of this one, unique among those that run
	// Every is how often it says that its edges live. 0: 5 s.
	Every time.Duration
	// Pause is the least time between two writes of changes, so that a burst of
	// answers is one write. 0: 25 ms.
	Pause time.Duration
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: slog.Default

	written map[string][]byte // by edge, what was written last
	failing bool              // the last write failed, and was logged
}

// Run writes until ctx ends, and then that its edges are gone. What could not be
// written is written with the next beat.
func (r *Recorder) Run(ctx context.Context) {
	r.fill()
	beat := time.NewTicker(r.Every)
	defer beat.Stop()
	for {
		changed := r.Source.Changed()
		r.note(r.record(ctx))
		select {
		case <-ctx.Done():
			r.leave(context.WithoutCancel(ctx))
			return
		case <-beat.C:
			r.note(r.beat(ctx))
		case <-changed:
			pause(ctx, r.Pause)
		}
	}
}

func (r *Recorder) fill() {
	if r.Every == 0 {
		r.Every = 5 * time.Second
	}
	if r.Pause == 0 {
		r.Pause = 25 * time.Millisecond
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Log == nil {
		r.Log = slog.Default()
	}
	r.written = map[string][]byte{}
}

// record writes the edges whose status differs from what was written.
func (r *Recorder) record(ctx context.Context) error {
	var changed []xds.EdgeStatus
	next := map[string][]byte{}
	for _, e := range r.Source.Edges() {
		text, err := fingerprint(e)
		if err != nil {
			return err
		}
		if next[e.ID] = text; !bytes.Equal(r.written[e.ID], text) {
			changed = append(changed, e)
		}
	}
	if err := r.Store.Observe(ctx, r.Replica, r.Now(), changed); err != nil {
		return err
	}
	r.written = next
	return nil
}

// fingerprint is equal for equal statuses, whenever the edge was last seen.
func fingerprint(e xds.EdgeStatus) ([]byte, error) {
	e.LastSeen = time.Time{}
	return json.Marshal(e)
}

// beat says that the connected edges live.
func (r *Recorder) beat(ctx context.Context) error {
	ids := []string{}
	for _, e := range r.Source.Edges() {
		if e.Connected {
			ids = append(ids, e.ID)
		}
	}
	n, err := r.Store.Beat(ctx, r.Replica, ids)
	if n < len(ids) {
		clear(r.written) // next time all of it
	}
	return err
}

// leave writes that this replica's edges are without it.
func (r *Recorder) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	edges := r.Source.Edges()
	for i := range edges {
		if edges[i].Connected {
			edges[i].Connected, edges[i].Since = false, r.Now()
		}
	}
	r.note(r.Store.Observe(ctx, r.Replica, r.Now(), edges))
}

// note logs the first failure of a row, and the end of the row. After a failure
// everything is written anew: the database may have lost it.
func (r *Recorder) note(err error) {
	if err != nil {
		clear(r.written)
		if !r.failing {
			r.Log.Warn("the status of edges is not being written", "cause", err)
		}
	} else if r.failing {
		r.Log.Info("the status of edges is being written again")
	}
	r.failing = err != nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
