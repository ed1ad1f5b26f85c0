// Package onair keeps what is said in streams while they are on air, writes it as
// subtitles of their HLS, and as the captions that are left when they end.
//
// A segment of subtitles never changes once it is listed, and pictures do not wait for it.
// So what was said is shown from the moment at which it is known, by the clock of the wall,
// in the segments of then: late, and never lost. What is kept of a recording has the
// times at which it was said.
package onair

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// The states of captions that are generated.
const (
	Waiting   = "waiting"   // for the stream to go on air, or for a place
	Listening = "listening" // to it
	Failed    = "failed"    // and tried again
	Held      = "held"      // by the owner
)

// Store is where captions of streams on air are kept. Every field is required.
type Store struct {
	DB  postgres.DB
	Now func() time.Time
}

// View is what callers see of the generation of a track.
type View struct {
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// LateMS is how much later than the end of the speech it was shown, in the median of the
	// last 20 utterances of this broadcast; null: there are none.
	LateMS *int `json:"late_ms"`
}

// silence is after how long without a word of the engine's process its state is not
// believed any more.
const silence = 15 * time.Second

// Hold stops generating captions of a track, and reports whether they were generated.
func Hold(ctx context.Context, tx pgx.Tx, stream, language string) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE media_live_captions SET active = false WHERE stream_id = $1 AND language = $2`, stream, language)
	if err != nil {
		return false, fmt.Errorf("hold generation of captions: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// Begin generates captions of a track, again where that was held.
func Begin(ctx context.Context, tx pgx.Tx, stream, language string) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_live_captions (stream_id, language, active, state, message) VALUES ($1, $2, true, 'waiting', '')
		ON CONFLICT (stream_id, language) DO UPDATE SET active = true, state = 'waiting', message = ''`, stream, language)
	if err != nil {
		return fmt.Errorf("begin generation of captions: %w", err)
	}
	return nil
}

// Drop ends the generation of a track, if it is generated, with what was heard.
func Drop(ctx context.Context, tx pgx.Tx, stream, language string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM media_live_captions WHERE stream_id = $1 AND language = $2`, stream, language); err != nil {
		return fmt.Errorf("end generation of captions: %w", err)
	}
	return nil
}

// Views tells of the tracks of a stream that are generated, by language.
func (s Store) Views(ctx context.Context, stream string) (map[string]View, error) {
	type row struct {
		Language string     `db:"language"`
		Active   bool       `db:"active"`
		State    string     `db:"state"`
		Message  string     `db:"message"`
		SeenAt   *time.Time `db:"seen_at"`
		LateMS   *int       `db:"late_ms"`
	}
	rows, _ := s.DB.Query(ctx, `SELECT c.language, c.active, c.state, c.message, c.seen_at,
			(SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY u.late_ms) FROM (SELECT late_ms FROM media_live_utterances
				WHERE stream_id = c.stream_id AND language = c.language ORDER BY shown_at DESC LIMIT 20) u) AS late_ms
		FROM media_live_captions c WHERE c.stream_id = $1`, stream)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("read generation of captions: %w", err)
	}
	out := map[string]View{}
	for _, r := range found {
		v := View{State: r.State, Message: r.Message, LateMS: r.LateMS}
		switch {
		case !r.Active:
			v.State, v.Message = Held, ""
		case r.SeenAt == nil || s.Now().Sub(*r.SeenAt) > silence:
			v.State, v.Message = Waiting, ""
		}
		out[r.Language] = v
	}
	return out, nil
}

// Tell stores the state of a track's generation.
func (s Store) Tell(ctx context.Context, stream, language, state, message string) error {
	_, err := s.DB.Exec(ctx, `UPDATE media_live_captions SET state = $3, message = $4, seen_at = $5 WHERE stream_id = $1 AND language = $2`, stream, language, state, message, s.Now())
	if err != nil {
		return fmt.Errorf("store state of captions: %w", err)
	}
	return nil
}

// Renditions are the languages in which a stream on air has captions.
func (s Store) Renditions(ctx context.Context, stream string) ([]Rendition, error) {
	rows, _ := s.DB.Query(ctx, `SELECT t.language, t.label FROM media_live_captions c JOIN media_captions t USING (stream_id, language)
		WHERE c.stream_id = $1 AND c.active ORDER BY t.created_at, t.language`, stream)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Rendition])
	if err != nil {
		return nil, fmt.Errorf("read captions on air: %w", err)
	}
	return found, nil
}

// Utterance is what was said between two pauses.
type Utterance struct {
	Session  string
	SpokenAt time.Time // when the transcript's times begin
	Text     transcript.Transcript
}

// Add stores an utterance, which players show from now on, and returns how late that is
// after the speech. It fails with not_found when the track is gone.
func (s Store) Add(ctx context.Context, stream, language string, u Utterance) (time.Duration, error) {
	text, err := json.Marshal(u.Text)
	if err != nil {
		return 0, fmt.Errorf("encode utterance: %w", err)
	}
	cues := schedule(u.Text)
	if len(cues) == 0 {
		return 0, nil
	}
	shown := s.Now()
	hidden := shown.Add(seconds(cues[len(cues)-1].End))
	late := max(0, shown.Sub(u.SpokenAt.Add(seconds(lastWord(u.Text)))))
	_, err = s.DB.Exec(ctx, `INSERT INTO media_live_utterances (stream_id, language, session_id, spoken_at, shown_at, hidden_at, late_ms, transcript)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, stream, language, u.Session, u.SpokenAt, shown, hidden, late.Milliseconds(), text)
	switch postgres.Constraint(err) {
	case "media_live_utterances_track_fkey", "media_live_utterances_session_fkey":
		return 0, &apierror.Error{Code: decision.NotFound}
	}
	if err != nil {
		return 0, fmt.Errorf("store utterance: %w", err)
	}
	return late, nil
}

// lastWord is when the last word of a transcript ends.
func lastWord(t transcript.Transcript) float64 {
	if n := len(t.Words); n > 0 {
		return t.Words[n-1].End
	}
	return t.Duration
}

// maxShown bounds the utterances of one piece.
const maxShown = 20

// Piece writes the captions of a segment as WebVTT: all that is shown in it, whole, so
// that players may join it with the pieces before and after.
func (s Store) Piece(ctx context.Context, stream string, p Piece) (string, error) {
	rows, _ := s.DB.Query(ctx, `SELECT id, shown_at, transcript FROM media_live_utterances
		WHERE stream_id = $1 AND language = $2 AND shown_at < $4 AND hidden_at > $3 ORDER BY shown_at LIMIT $5`,
		stream, p.Language, p.From, p.From.Add(p.Length), maxShown)
	var out strings.Builder
	out.WriteString(header)
	var id int64
	var at time.Time
	var text []byte
	_, err := pgx.ForEachRow(rows, []any{&id, &at, &text}, func() error {
		var t transcript.Transcript
		if err := json.Unmarshal(text, &t); err != nil {
			return err
		}
		write(&out, p, id, schedule(t), (at.Sub(p.From) + p.Start).Seconds())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read captions on air: %w", err)
	}
	return out.String(), nil
}

// apart is how long after the one before it a cue is shown at most, in seconds: what has
// waited is read faster than it was said.
const apart = 1.5

// schedule are the cues of an utterance, in seconds from the moment at which it is shown.
func schedule(t transcript.Transcript) []transcript.Cue {
	cues := t.Cues()
	for i := range cues {
		c := &cues[i]
		length := max(apart, c.End-c.Start)
		if i == 0 {
			c.Start = 0
		} else {
			c.Start = cues[i-1].Start + apart
		}
		c.End = c.Start + length
	}
	return cues
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
