package streams

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Service is what can be done with streams. Every field but Record is required.
type Service struct {
	DB        postgres.DB
	Events    events.Emitter
	Plans     plans.Source
	Endpoints Endpoints
	Now       func() time.Time
	// Record opens the recording of a session that has just ended and returns its
	// id. Nil: nothing is recorded.
	Record func(context.Context, pgx.Tx, owner.Owner, Stream, Session) (string, error)
}

// ETag is the version of s as HTTP's entity tag.
func ETag(s Stream) string { return `"` + strconv.FormatInt(s.Version, 10) + `"` }

// Create stores a new stream and returns it with the text of its stream key,
// which nobody can read again.
func (v Service) Create(ctx context.Context, o owner.Owner, in Input) (Stream, string, error) {
	var f form.Form
	s := Defaults()
	in.Apply(&f, &s, v.Plans.Of(o.Plan))
	if err := f.Err(); err != nil {
		return Stream{}, "", err
	}
	key := ident.NewSecret("sk")
	s.ID, s.PlaybackID = ident.New("strm"), ident.New("play")
	s.Owner, s.Account, s.Plan = o.ID, o.Account, o.Plan
	s.KeyHash, s.KeyHint = key.Hash, key.Hint
	s.Version, s.CreatedAt = 1, v.now()
	s.UpdatedAt = s.CreatedAt
	err := postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error { return insert(ctx, tx, s) })
	return s, key.Text, err
}

// Get returns one stream, or not_found.
func (v Service) Get(ctx context.Context, o owner.Owner, id string) (Stream, error) {
	return get(ctx, v.DB, o.ID, id, "")
}

// List returns one page of streams, newest first.
func (v Service) List(ctx context.Context, o owner.Owner, f Filter) (paging.List[View], error) {
	found, err := list(ctx, v.DB, o.ID, f)
	return paging.Map(found, func(s Stream) View { return v.Endpoints.ViewOf(s, "") }), err
}

// Update changes the given fields. It fails with precondition_failed when
// ifMatch is given and is not the present ETag, and with conflict when the
// protocol of a stream on air would change.
func (v Service) Update(ctx context.Context, o owner.Owner, id, ifMatch string, in Input) (Stream, error) {
	return v.change(ctx, o, id, ifMatch, func(tx pgx.Tx, s *Stream) error {
		var f form.Form
		before := s.Protocol
		in.Apply(&f, s, v.Plans.Of(o.Plan))
		if err := f.Err(); err != nil {
			return err
		}
		if s.Protocol != before && s.Status.OnAir() {
			return apierror.Errorf(decision.Conflict, "The protocol of a stream that is %s cannot change. Stop it first.", s.Status)
		}
		return update(ctx, tx, s, v.now())
	})
}

// RotateKey gives the stream a new key and returns its text. The old key stops
// at once for new publishers; one that is connected stays.
func (v Service) RotateKey(ctx context.Context, o owner.Owner, id string) (Stream, string, error) {
	key := ident.NewSecret("sk")
	s, err := v.change(ctx, o, id, "", func(tx pgx.Tx, s *Stream) error {
		s.KeyHash, s.KeyHint = key.Hash, key.Hint
		return update(ctx, tx, s, v.now())
	})
	return s, key.Text, err
}

// Delete removes the stream, ending its session first where one is open, and
// emits stream.deleted. Its past sessions and recordings stay.
func (v Service) Delete(ctx context.Context, o owner.Owner, id, ifMatch string) error {
	_, err := v.change(ctx, o, id, ifMatch, func(tx pgx.Tx, s *Stream) error {
		if err := v.offAir(ctx, tx, o, *s); err != nil {
			return err
		}
		if err := remove(ctx, tx, s.ID); err != nil {
			return err
		}
		return v.emit(ctx, tx, o, *s, "stream.deleted", map[string]any{"title": s.Title, "protocol": s.Protocol, "deleted_at": v.now()})
	})
	return err
}

// offAir ends the session of a stream that goes, if it has one.
func (v Service) offAir(ctx context.Context, tx pgx.Tx, o owner.Owner, s Stream) error {
	switch {
	case s.Status == Starting:
		return dropSession(ctx, tx, s.ID)
	case s.Status.OnAir():
		return v.finish(ctx, tx, o, s)
	}
	return nil
}

// change runs f on the locked row, all in one transaction.
func (v Service) change(ctx context.Context, o owner.Owner, id, ifMatch string, f func(pgx.Tx, *Stream) error) (s Stream, err error) {
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if s, err = get(ctx, tx, o.ID, id, "FOR UPDATE"); err != nil {
			return err
		}
		if !matches(ifMatch, s) {
			return &apierror.Error{Code: decision.Precondition}
		}
		s.Plan = o.Plan
		return f(tx, &s)
	})
	return s, err
}

// matches is If-Match of RFC 9110: a list of entity tags, or *.
func matches(ifMatch string, s Stream) bool {
	if ifMatch == "" {
		return true
	}
	for tag := range strings.SplitSeq(ifMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == ETag(s) {
			return true
		}
	}
	return false
}

// now is the clock at the precision of the database and of the API.
func (v Service) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }
