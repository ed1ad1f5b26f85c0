package streams

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Attempt is somebody who wants to publish.
type Attempt struct {
	PlaybackID string
	Protocol   string // rtmp, srt, webrtc or moq
	Key        string // as sent; see KeyOf
}

// KeyOf finds the stream key in what the protocols carry: a bearer token
// (WebRTC), a password (SRT) or the query of the address (RTMP). It takes time linear
// in them, which the engine's question bounds.
func KeyOf(token, password, query string) string {
	switch {
	case token != "":
		return token
	case password != "":
		return password
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return q.Get("key")
}

// Admit says whether a may publish. It fails with STREAM_004 when the key is not
// the stream's or is in use, with STREAM_001 when the protocol is another, and
// with STREAM_003 when the plan allows no further stream on air. Whoever has the
// key hears of the failure as stream.error too.
func (v Service) Admit(ctx context.Context, a Attempt) error {
	s, err := ByPlayback(ctx, v.DB, a.PlaybackID)
	if apierror.Code(err) == decision.NotFound || err == nil && !ident.Matches(a.Key, s.KeyHash) {
		return &apierror.Error{Code: decision.Stream004}
	}
	if err != nil {
		return err
	}
	code, err := v.refusal(ctx, s, a)
	if err != nil || code == "" {
		return err
	}
	if err := v.EmitError(ctx, s, code); err != nil {
		return err
	}
	return &apierror.Error{Code: code}
}

// refusal is why a publisher with the right key may not publish, or "". The
// count of streams on air is taken without a lock: the exact one follows when
// the stream goes live.
func (v Service) refusal(ctx context.Context, s Stream, a Attempt) (decision.Code, error) {
	if strings.TrimSuffix(a.Protocol, "s") != s.Protocol { // rtmps is rtmp
		return decision.Stream001, nil
	}
	return v.Room(ctx, s)
}

// Room is why nobody may begin to publish to s now, whatever the protocol, or "":
// STREAM_004, somebody does, or STREAM_003, the plan allows no further stream on air.
func (v Service) Room(ctx context.Context, s Stream) (decision.Code, error) {
	var used bool
	var others int
	err := v.DB.QueryRow(ctx, `SELECT
			EXISTS (SELECT FROM media_sessions WHERE stream_id = $1 AND ended_at IS NULL AND engine),
			(SELECT count(*) FROM media_streams WHERE owner = $2 AND id <> $1 AND status IN ('live', 'paused'))`, s.ID, s.Owner).Scan(&used, &others)
	if err != nil {
		return "", fmt.Errorf("read publishers: %w", err)
	}
	most := v.Plans.Of(s.Plan).ConcurrentStreams
	switch {
	case used:
		return decision.Stream004, nil
	case most > 0 && others >= most:
		return decision.Stream003, nil
	}
	return "", nil
}

// Vacant says whether a source of the platform's own, such as a telephone call, may
// publish to a stream, whatever its protocol. It fails as Admit does, but for STREAM_001.
func (v Service) Vacant(ctx context.Context, id string) error {
	s, err := ByID(ctx, v.DB, id)
	if err != nil {
		return err
	}
	code, err := v.refusal(ctx, s, Attempt{Protocol: s.Protocol})
	if err == nil && code != "" {
		err = &apierror.Error{Code: code}
	}
	return err
}

// Published moves a stream to live because a publisher sends. It fails as Act does.
func (v Service) Published(ctx context.Context, s Stream) error {
	_, err := v.Act(ctx, s.By(), s.ID, Command{Action: Start, publisher: true})
	return err
}

// Unpublished ends the session of a publisher who has gone.
func (v Service) Unpublished(ctx context.Context, s Stream) error {
	_, err := v.Act(ctx, s.By(), s.ID, Command{Action: Stop, publisher: true})
	return err
}

// Publishing returns the streams with an open session in which a publisher sends.
func (v Service) Publishing(ctx context.Context) ([]Stream, error) {
	rows, _ := v.DB.Query(ctx, `SELECT `+columns+` FROM media_streams
		WHERE id IN (SELECT stream_id FROM media_sessions WHERE engine AND ended_at IS NULL)`)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Stream])
	if err != nil {
		return nil, fmt.Errorf("read publishers: %w", err)
	}
	return found, nil
}

// EmitError emits stream.error.
func (v Service) EmitError(ctx context.Context, s Stream, code decision.Code) error {
	if s.Account == "" {
		return nil
	}
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		return v.Events.EmitTx(ctx, tx, events.Event{Account: s.Account, Type: "stream.error", StreamID: s.ID, ErrorCode: string(code), Time: v.now(),
			Data: map[string]any{"error_code": code, "error_message": decision.Lookup(code).Message}})
	})
}
