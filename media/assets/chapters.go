package assets

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// maxChapters bounds the chapters of one asset.
const maxChapters = 500

// ChapterInput is the body of POST …/chapters. Times are seconds.
type ChapterInput struct {
	Title string   `json:"title"`
	Start *float64 `json:"start"`
}

// Chapter is a part of a film: it ends where the next one begins, or with the film.
type Chapter struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Start float64  `json:"start"`
	End   *float64 `json:"end"` // null for the last one of a film whose length is not known
}

// chapter is one row of media_chapters.
type chapter struct {
	ID      string    `db:"id"`
	AssetID string    `db:"asset_id"`
	Title   string    `db:"title"`
	StartMS int64     `db:"start_ms"`
	Created time.Time `db:"created_at"`
}

// check reads the input against a film of this length; 0: not known.
func (in ChapterInput) check(lengthMS int64) (chapter, error) {
	var f form.Form
	f.Text("title", in.Title, MaxTitle)
	if in.Start == nil {
		f.Fail("start", "is missing", "seconds from the start")
		return chapter{}, f.Err()
	}
	if !(*in.Start >= 0 && *in.Start <= maxPosition) {
		f.Fail("start", "is out of range", "seconds from 0 to 2592000")
		return chapter{}, f.Err()
	}
	start := int64(math.Round(*in.Start * 1000))
	if lengthMS > 0 && start >= lengthMS {
		f.Fail("start", "lies beyond the end", fmt.Sprintf("less than %.3f", seconds(lengthMS)))
	}
	return chapter{ID: ident.New("chap"), Title: in.Title, StartMS: start}, f.Err()
}

// timeline shows chapters, which are in order, of a film of this length.
func timeline(rows []chapter, lengthMS int64) []Chapter {
	out := []Chapter{}
	for i, c := range rows {
		end := positive(lengthMS)
		if i+1 < len(rows) {
			next := seconds(rows[i+1].StartMS)
			end = &next
		}
		out = append(out, Chapter{ID: c.ID, Title: c.Title, Start: seconds(c.StartMS), End: end})
	}
	return out
}

// addChapter answers POST …/chapters with the new chapter.
func (s surface) addChapter(t owner.Target, r *http.Request, in ChapterInput) (Chapter, error) {
	return s.insertChapter(r.Context(), t.Owner, t.ID, in)
}

// insertChapter stores a chapter. It fails with conflict when another one begins
// at the same time, or when there are too many.
func (s surface) insertChapter(ctx context.Context, o owner.Owner, id string, in ChapterInput) (out Chapter, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		a, err := one(ctx, tx, `owner = $1 AND kind = $2 AND id = $3 FOR UPDATE`, o.ID, s.kind, id)
		if err != nil {
			return err
		}
		c, err := in.check(a.DurationMS)
		if err != nil {
			return err
		}
		if there, err := chapters(ctx, tx, id); err != nil {
			return err
		} else if len(there) >= maxChapters {
			return apierror.Errorf(decision.Conflict, "There are %d chapters already.", maxChapters)
		}
		_, err = tx.Exec(ctx, `INSERT INTO media_chapters (id, asset_id, title, start_ms, created_at) VALUES ($1, $2, $3, $4, $5)`,
			c.ID, id, c.Title, c.StartMS, now(s.Now))
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.ConstraintName == "media_chapters_once" {
			return apierror.Errorf(decision.Conflict, "Another chapter begins at %.3f s.", seconds(c.StartMS))
		}
		if err != nil {
			return fmt.Errorf("save chapter: %w", err)
		}
		all, err := chapters(ctx, tx, id)
		for _, shown := range timeline(all, a.DurationMS) {
			if shown.ID == c.ID {
				out = shown
			}
		}
		return err
	})
	return out, err
}

// listChapters answers GET …/chapters, in order.
func (v Service) listChapters(a Asset, r *http.Request, _ httpapi.None) (map[string][]Chapter, error) {
	all, err := chapters(r.Context(), v.DB, a.ID)
	return map[string][]Chapter{"data": timeline(all, a.DurationMS)}, err
}

// deleteChapter answers DELETE …/chapters/{chapter}; the one before it then lasts
// until the next.
func (v Service) deleteChapter(t owner.Target, r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	tag, err := v.DB.Exec(r.Context(), `DELETE FROM media_chapters WHERE id = $1 AND asset_id = $2
		AND EXISTS (SELECT FROM media_assets WHERE id = $2 AND owner = $3)`, chi.URLParam(r, "chapter"), t.ID, t.Owner.ID)
	if err != nil {
		return none, fmt.Errorf("delete chapter: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return none, &apierror.Error{Code: decision.NotFound}
	}
	return none, nil
}

// chapters reads those of an asset, in order.
func chapters(ctx context.Context, db postgres.DB, asset string) ([]chapter, error) {
	rows, _ := db.Query(ctx, `SELECT id, asset_id, title, start_ms, created_at FROM media_chapters WHERE asset_id = $1 ORDER BY start_ms`, asset)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[chapter])
	if err != nil {
		return nil, fmt.Errorf("read chapters: %w", err)
	}
	return found, nil
}
