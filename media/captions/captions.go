// Package captions keeps the caption tracks of streams as WebVTT, one for each
// language.
package captions

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// maxTracks bounds the languages of one stream.
const maxTracks = 100

// Track is one row of media_captions.
type Track struct {
	Language  string    `db:"language"` // BCP 47, in lower case
	Label     string    `db:"label"`
	Kind      string    `db:"kind"`
	Content   string    `db:"content"` // WebVTT; empty: declared, not filled yet
	Cues      int       `db:"cues"`
	CreatedAt time.Time `db:"created_at"`
}

// View is a track as callers see it.
type View struct {
	Language string `json:"language"`
	Label    string `json:"label"`
	Kind     string `json:"kind"`
	Status   string `json:"status"` // empty or ready
	// Generation is how captions of the stream on air come about; absent: they do not.
	Generation *onair.View `json:"generation,omitempty"`
	Cues       int         `json:"cues"`
	URL        *string     `json:"url"` // WebVTT; null while empty
	CreatedAt  time.Time   `json:"created_at"`
}

// Input is the body of POST /v1/streams/{id}/captions and of PUT on a track,
// where the language comes from the path.
type Input struct {
	Language string `json:"language"`
	Label    string `json:"label"`   // empty: the language
	Kind     string `json:"kind"`    // captions (default) or subtitles
	Content  string `json:"content"` // WebVTT; empty: the track is filled later
	// Generate has the track made of the speech of the stream while it is on air. With PUT
	// false, and no content, holds that.
	Generate bool `json:"generate"`
}

// Service is what can be done with captions.
type Service struct {
	DB       postgres.DB
	Events   events.Emitter
	Streams  streams.Service
	Watch    func(*http.Request) (streams.Stream, string, error) // the stream in a viewer's path, if it may be watched
	Playback string                                              // public address of /v1/playback
	Now      func() time.Time
	OnAir    onair.Store
	// Speaks is an error where there is no engine that writes a language down.
	Speaks func(ctx context.Context, language string) error
}

var language = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8}){0,4}$`)

// track checks in and makes a track of it.
func (in Input) track() (Track, error) {
	var f form.Form
	t := Track{Language: strings.ToLower(in.Language), Label: in.Label, Kind: in.Kind, Content: in.Content}
	if !language.MatchString(t.Language) {
		f.Fail("language", "is not a language tag", "BCP 47, such as en or pt-BR")
	}
	if t.Label == "" {
		t.Label = t.Language
	}
	if language.MatchString(t.Language) || in.Label != "" {
		f.Text("label", t.Label, 100)
	}
	if t.Kind == "" {
		t.Kind = "captions"
	}
	f.OneOf("kind", t.Kind, []string{"captions", "subtitles"})
	t.Cues = checkContent(&f, in.Content)
	if in.Generate && in.Content != "" {
		f.Fail("content", "is there, although captions are to be generated", "either content or generate")
	}
	return t, f.Err()
}

// checkContent counts the cues of the content. Size and type have codes of
// their own, as with any file.
func checkContent(f *form.Form, content string) int {
	switch {
	case content == "":
		return 0
	case len(content) > MaxContent:
		f.FailAs(decision.Storage001, "content", "is too large", "at most "+strconv.Itoa(MaxContent)+" bytes")
		return 0
	case strings.ContainsRune(content, 0):
		f.Fail("content", "has NUL characters", "WebVTT")
		return 0
	}
	cues, problem := Parse(content)
	if problem != nil {
		f.FailAs(decision.Storage002, "content", "line "+strconv.Itoa(problem.Line)+" "+problem.Issue, "WebVTT")
	}
	return cues
}

// Put stores a track of a stream, which is not generated then, and emits
// captions.generated once it has content.
// It fails with conflict when create is set and the language is taken, and with
// not_found when it is not set and the track is not there.
func (v Service) Put(ctx context.Context, s streams.Stream, t Track, create bool) (Track, error) {
	t.CreatedAt = v.Now().UTC().Truncate(time.Millisecond)
	err := postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		write := replace
		if create {
			write = insert
		}
		if err := write(ctx, tx, s.ID, &t); err != nil {
			return err
		}
		if err := onair.Drop(ctx, tx, s.ID, t.Language); err != nil || t.Content == "" {
			return err
		}
		return v.announce(ctx, tx, s, t)
	})
	return t, err
}

// Generate stores a track that is made of the speech of its stream, or has one that is
// there made so from now on; what it has stays until the next broadcast ends. It fails as
// Put does.
func (v Service) Generate(ctx context.Context, s streams.Stream, t Track, create bool) (Track, error) {
	t.CreatedAt = v.Now().UTC().Truncate(time.Millisecond)
	err := postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		write := relabel
		if create {
			write = insert
		}
		if err := write(ctx, tx, s.ID, &t); err != nil {
			return err
		}
		return onair.Begin(ctx, tx, s.ID, t.Language)
	})
	return t, err
}

// Hold stops generating a track, and leaves what it has. It reports whether it is one that
// is generated.
func (v Service) Hold(ctx context.Context, s streams.Stream, t *Track) (generated bool, err error) {
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if generated, err = onair.Hold(ctx, tx, s.ID, t.Language); err != nil || !generated {
			return err
		}
		return relabel(ctx, tx, s.ID, t)
	})
	return generated, err
}

// Fill gives a generated track what was said in a broadcast, as much of it as a track may
// have, in the caller's transaction; tell says captions.generated. A track that is gone is
// left alone.
func (v Service) Fill(ctx context.Context, tx pgx.Tx, stream, language string, said transcript.Transcript, tell bool) error {
	s, err := streams.ByID(ctx, tx, stream)
	if err != nil {
		return err
	}
	t := Track{Language: language}
	t.Content, t.Cues = said.VTTWithin(MaxContent)
	tag, err := tx.Exec(ctx, `UPDATE media_captions SET content = $3, cues = $4 WHERE stream_id = $1 AND language = $2`, stream, language, t.Content, t.Cues)
	if err != nil {
		return fmt.Errorf("fill captions: %w", err)
	}
	if tag.RowsAffected() == 0 || !tell {
		return nil
	}
	return v.announce(ctx, tx, s, t)
}

// announce says captions.generated.
func (v Service) announce(ctx context.Context, tx pgx.Tx, s streams.Stream, t Track) error {
	if s.Account == "" {
		return nil
	}
	return v.Events.EmitTx(ctx, tx, events.Event{Account: s.Account, Type: "captions.generated", StreamID: s.ID, Time: v.Now(),
		Data: map[string]any{"language": t.Language, "format": "vtt", "url": v.url(s, t)}})
}

// relabel changes what a track is called, and leaves what it has.
func relabel(ctx context.Context, tx pgx.Tx, stream string, t *Track) error {
	err := tx.QueryRow(ctx, `UPDATE media_captions SET label = $3, kind = $4 WHERE stream_id = $1 AND language = $2 RETURNING left(content, 1), cues, created_at`,
		stream, t.Language, t.Label, t.Kind).Scan(&t.Content, &t.Cues, &t.CreatedAt)
	return postgres.NotFound(err, "change captions")
}

// insert stores a new track. The count is no lock: of two at once, one may be
// the track too many, which hurts nobody.
func insert(ctx context.Context, tx pgx.Tx, stream string, t *Track) error {
	var n int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM media_captions WHERE stream_id = $1`, stream).Scan(&n)
	if err == nil && n >= maxTracks {
		return apierror.Errorf(decision.Conflict, "The stream has %d caption tracks, which is the most it can have.", n)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO media_captions (stream_id, language, label, kind, content, cues, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, stream, t.Language, t.Label, t.Kind, t.Content, t.Cues, t.CreatedAt)
	}
	switch postgres.Constraint(err) {
	case "media_captions_pkey":
		return apierror.Errorf(decision.Conflict, "The stream has captions in %s already.", t.Language)
	case "media_captions_stream_fkey":
		return &apierror.Error{Code: decision.NotFound}
	}
	if err != nil {
		return fmt.Errorf("insert captions: %w", err)
	}
	return nil
}

// replace overwrites a track, whose time of creation stays.
func replace(ctx context.Context, tx pgx.Tx, stream string, t *Track) error {
	err := tx.QueryRow(ctx, `UPDATE media_captions SET label = $3, kind = $4, content = $5, cues = $6
		WHERE stream_id = $1 AND language = $2 RETURNING created_at`,
		stream, t.Language, t.Label, t.Kind, t.Content, t.Cues).Scan(&t.CreatedAt)
	return postgres.NotFound(err, "replace captions")
}

// list returns the tracks of a stream by language, without their content but for
// the one letter that says there is some.
func (v Service) list(ctx context.Context, stream string) ([]Track, error) {
	rows, _ := v.DB.Query(ctx, `SELECT language, label, kind, left(content, 1) AS content, cues, created_at
		FROM media_captions WHERE stream_id = $1 ORDER BY language`, stream)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Track])
	if err != nil {
		return nil, fmt.Errorf("list captions: %w", err)
	}
	return found, nil
}

// remove deletes one track, or fails with not_found.
func (v Service) remove(ctx context.Context, stream, language string) error {
	tag, err := v.DB.Exec(ctx, `DELETE FROM media_captions WHERE stream_id = $1 AND language = $2`, stream, language)
	if err != nil {
		return fmt.Errorf("delete captions: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	return nil
}

// content is the WebVTT of a track; one that is declared only is not_found.
func (v Service) content(ctx context.Context, stream, language string) (text string, err error) {
	err = v.DB.QueryRow(ctx, `SELECT content FROM media_captions WHERE stream_id = $1 AND language = $2 AND content <> ''`, stream, language).Scan(&text)
	return text, postgres.NotFound(err, "read captions")
}

// url is where viewers get the track.
func (v Service) url(s streams.Stream, t Track) string {
	return v.Playback + "/" + s.PlaybackID + "/captions/" + t.Language + ".vtt"
}

// view shows a track.
func (v Service) view(s streams.Stream, t Track) View {
	out := View{Language: t.Language, Label: t.Label, Kind: t.Kind, Status: "empty", Cues: t.Cues, CreatedAt: t.CreatedAt.UTC()}
	if t.Content != "" {
		url := v.url(s, t)
		out.Status, out.URL = "ready", &url
	}
	return out
}
