package streams

import (
	"context"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
)

// Command is the body of POST …/streams/{id}/actions.
type Command struct {
	Action   Action    `json:"action"`
	Settings *Settings `json:"settings"`

	publisher bool // it is the engine that says so: a publisher has come or gone
}

// Outcome is what a command has done.
type Outcome struct {
	StreamID string `json:"stream_id"`
	Action   string `json:"action"` // in the past tense: started, …
	Status   Status `json:"status"`
	Changed  bool   `json:"changed"` // false: the stream was there already
	Message  string `json:"message"`
}

// Act carries out a command and emits stream.started or stream.ended in the same
// transaction. A stream that is started where there is a media engine is starting
// until a publisher sends; then it is live, its session begins and stream.started says
// so. A command that is repeated succeeds again and changes nothing.
// It fails with conflict when the action makes no sense in the stream's state,
// and with STREAM_003 when the plan allows no further stream on air.
func (v Service) Act(ctx context.Context, o owner.Owner, id string, c Command) (Outcome, error) {
	limits := v.Plans.Of(o.Plan)
	var before Status
	s, err := v.change(ctx, o, id, "", func(tx pgx.Tx, s *Stream) error {
		before = s.Status
		quality, bitrate := s.Quality, s.BitrateKbps
		var f form.Form
		f.OneOf("action", string(c.Action), Actions)
		if c.Settings != nil {
			c.Settings.Apply(&f, s, limits)
		}
		if err := f.Err(); err != nil {
			return err
		}
		if next, _ := Next(before, c.Action); next == before && !c.publisher && s.Quality == quality && s.BitrateKbps == bitrate {
			return nil // there already: not even the ETag changes
		}
		return v.move(ctx, tx, o, s, c)
	})
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{StreamID: s.ID, Action: c.Action.Past(), Status: s.Status, Changed: s.Status != before}
	switch out.Message = "Stream " + out.Action; {
	case !out.Changed:
		out.Message = "Stream was " + string(s.Status) + " already"
	case s.Status == Starting:
		out.Message += ": it is live when its publisher sends"
	}
	return out, nil
}

// move takes s to its next state, with all that belongs to it.
func (v Service) move(ctx context.Context, tx pgx.Tx, o owner.Owner, s *Stream, c Command) error {
	before := s.Status
	next, ok := Next(before, c.Action)
	if !ok {
		return apierror.Errorf(decision.Conflict, "A stream that is %s cannot be %s.", before, c.Action.Past())
	}
	if next == Starting && (c.publisher || !v.Endpoints.Available) {
		next = Live // pictures are there; or no engine is, and the caller is believed
	}
	if next == Ended && before == Starting {
		return v.abandon(ctx, tx, s)
	}
	if next == Starting && before != Starting {
		s.StartedFrom = before
	}
	s.Status = next
	if err := update(ctx, tx, s, v.now()); err != nil {
		return err
	}
	switch {
	case next.OnAir() && !before.OnAir():
		return v.begin(ctx, tx, o, *s, c.publisher)
	case before == Starting && next == Live:
		if err := beginSession(ctx, tx, s.ID, v.now()); err != nil {
			return err
		}
		return v.announce(ctx, tx, o, *s)
	case next.OnAir() && c.publisher:
		return markPublished(ctx, tx, s.ID)
	case before.OnAir() && !next.OnAir():
		return v.finish(ctx, tx, o, *s)
	}
	return nil
}

// abandon takes a stream that was starting back to what it was before: nobody has
// published, so there was no session and nobody hears of its end.
func (v Service) abandon(ctx context.Context, tx pgx.Tx, s *Stream) error {
	s.Status = s.StartedFrom
	if err := dropSession(ctx, tx, s.ID); err != nil {
		return err
	}
	return update(ctx, tx, s, v.now())
}

// begin opens a session. s is on air already, so the count includes it.
func (v Service) begin(ctx context.Context, tx pgx.Tx, o owner.Owner, s Stream, published bool) error {
	most := v.Plans.Of(o.Plan).ConcurrentStreams
	if n, err := countOnAir(ctx, tx, o.ID); err != nil {
		return err
	} else if most > 0 && n > most {
		return &apierror.Error{Code: decision.Stream003, RetryAfter: 60}
	}
	session := Session{ID: ident.New("sess"), Owner: o.ID, StreamID: s.ID, StartedAt: v.now(), Engine: published}
	if err := openSession(ctx, tx, session); err != nil || s.Status == Starting {
		return err
	}
	return v.announce(ctx, tx, o, s)
}

// announce says that s is live.
func (v Service) announce(ctx context.Context, tx pgx.Tx, o owner.Owner, s Stream) error {
	return v.emit(ctx, tx, o, s, "stream.started", map[string]any{
		"title": s.Title, "protocol": s.Protocol, "ingest_endpoint": v.Endpoints.endpoint(s)})
}

// finish closes the open session, and opens the recording of one that had a
// publisher.
func (v Service) finish(ctx context.Context, tx pgx.Tx, o owner.Owner, s Stream) error {
	session, err := closeSession(ctx, tx, s.ID, v.now())
	if err != nil {
		return err
	}
	data := map[string]any{"duration": int(session.EndedAt.Sub(session.StartedAt).Seconds()),
		"total_viewers": session.TotalViewers, "peak_viewers": session.PeakViewers}
	if s.Recording && session.Engine && v.Record != nil {
		if data["recording_id"], err = v.Record(ctx, tx, o, s, session); err != nil {
			return err
		}
	}
	return v.emit(ctx, tx, o, s, "stream.ended", data)
}

// emit tells the account. A paying agent has none: nobody could have subscribed.
func (v Service) emit(ctx context.Context, tx pgx.Tx, o owner.Owner, s Stream, kind string, data map[string]any) error {
	if o.Account == "" {
		return nil
	}
	return v.Events.EmitTx(ctx, tx, events.Event{
		Account: o.Account, Type: kind, StreamID: s.ID, Time: v.now(), Data: data})
}
