// Package chapters divides videos, recordings and clips into named parts, which people
// set or a job finds, and hands them to players as WebVTT.
package chapters

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// maxChapters bounds the chapters of one asset.
const maxChapters = 500

// maxPosition bounds a place in a film, in seconds: 30 days.
const maxPosition = 30 * 24 * 3600

// Input is the body of POST …/{id}/chapters and of PATCH, where absent is unchanged.
type Input struct {
	Title *string  `json:"title"`
	Start *float64 `json:"start"` // seconds
}

// AddInput is the body of POST /v1/chapters.
type AddInput struct {
	AssetID string   `json:"asset_id"`
	Title   *string  `json:"title"`
	Start   *float64 `json:"start"`
}

// Chapter is a part of a film: it ends where the next one begins, or with the film.
type Chapter struct {
	ID      string   `json:"id"`
	AssetID string   `json:"asset_id"`
	Title   string   `json:"title"`
	Start   float64  `json:"start"`  // seconds
	End     *float64 `json:"end"`    // null for the last one of a film whose length is not known
	Source  string   `json:"source"` // set by hand, or detected

	created time.Time
}

// row is one of media_chapters, with the time at which it ends.
type row struct {
	ID      string    `db:"id"`
	AssetID string    `db:"asset_id"`
	Title   string    `db:"title"`
	StartMS int64     `db:"start_ms"`
	EndMS   *int64    `db:"end_ms"`
	Found   bool      `db:"found"`
	Created time.Time `db:"created_at"`
}

// view shows a row.
func (r row) view() Chapter {
	c := Chapter{ID: r.ID, AssetID: r.AssetID, Title: r.Title, Start: seconds(r.StartMS), Source: "set", created: r.Created}
	if r.EndMS != nil {
		end := seconds(*r.EndMS)
		c.End = &end
	}
	if r.Found {
		c.Source = "detected"
	}
	return c
}

// seconds turns the milliseconds of the database into the seconds of the API.
func seconds(ms int64) float64 { return float64(ms) / 1000 }

// check reads what is set of the input against a film of this length; 0: not known.
func (in Input) check(f *form.Form, lengthMS int64) (startMS int64) {
	if in.Title != nil {
		f.Text("title", *in.Title, assets.MaxTitle)
	}
	if in.Start == nil {
		return 0
	}
	if !(*in.Start >= 0 && *in.Start <= maxPosition) {
		f.Fail("start", "is out of range", "seconds from 0 to 2592000")
		return 0
	}
	startMS = int64(math.Round(*in.Start * 1000))
	if lengthMS > 0 && startMS >= lengthMS {
		f.Fail("start", "lies beyond the end", fmt.Sprintf("less than %.3f", seconds(lengthMS)))
	}
	return startMS
}

// selected are the columns of rows, and from is where they are: c are chapters, a their assets.
const selected = `c.id, c.asset_id, c.title, c.start_ms, c.found, c.created_at,
		coalesce((SELECT min(n.start_ms) FROM media_chapters n WHERE n.asset_id = c.asset_id AND n.start_ms > c.start_ms), nullif(a.duration_ms, 0)) AS end_ms`

const from = `media_chapters c JOIN media_assets a ON a.id = c.asset_id`

// read returns the chapters that the rest of a query finds.
func read(ctx context.Context, db postgres.DB, rest string, args ...any) ([]Chapter, error) {
	rows, _ := db.Query(ctx, `SELECT `+selected+` FROM `+from+` WHERE `+rest, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("read chapters: %w", err)
	}
	list := []Chapter{}
	for _, r := range found {
		list = append(list, r.view())
	}
	return list, nil
}

// of returns the chapters of an asset, in order.
func of(ctx context.Context, db postgres.DB, asset string) ([]Chapter, error) {
	return read(ctx, db, `c.asset_id = $1 ORDER BY c.start_ms`, asset)
}

// one returns a chapter of an owner's, or not_found.
func one(ctx context.Context, db postgres.DB, owner, id string) (Chapter, error) {
	list, err := read(ctx, db, `a.owner = $1 AND c.id = $2`, owner, id)
	if err == nil && len(list) == 0 {
		err = &apierror.Error{Code: decision.NotFound}
	}
	if err != nil {
		return Chapter{}, err
	}
	return list[0], nil
}

// chapters is how all chapters of an owner are listed: newest first.
var chapters = paging.Table[Chapter]{
	Columns: selected, From: from,
	Scan: func(r pgx.CollectableRow) (Chapter, error) {
		found, err := pgx.RowToStructByName[row](r)
		return found.view(), err
	},
	Sorts: []paging.Sort[Chapter]{paging.Time("created_at", "c.created_at", func(c Chapter) time.Time { return c.created })},
	ID:    "c.id", IDOf: func(c Chapter) string { return c.ID },
	Created: "c.created_at",
}

// taken turns the error of a time that another chapter has into a conflict.
func taken(err error, startMS int64) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.ConstraintName == "media_chapters_once" {
		return apierror.Errorf(decision.Conflict, "Another chapter begins at %.3f s.", seconds(startMS))
	}
	return fmt.Errorf("save chapter: %w", err)
}

// Add stores a chapter of o's asset. It fails with conflict when another one begins at the
// same time, or when there are too many.
func (v Service) Add(ctx context.Context, o owner.Owner, asset string, in Input) (made Chapter, err error) {
	err = postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		a, err := assets.Find(ctx, tx, o.ID, asset, "FOR UPDATE")
		if err != nil {
			return err
		}
		var f form.Form
		start := in.check(&f, a.DurationMS)
		if in.Title == nil {
			f.Fail("title", "is missing or empty", "string of 1 to 200 characters")
		}
		if in.Start == nil {
			f.Fail("start", "is missing", "seconds from the start")
		}
		if err := f.Err(); err != nil {
			return err
		}
		var there int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM media_chapters WHERE asset_id = $1`, asset).Scan(&there); err != nil {
			return fmt.Errorf("count chapters: %w", err)
		}
		if there >= maxChapters {
			return apierror.Errorf(decision.Conflict, "There are %d chapters already.", maxChapters)
		}
		id := ident.New("chap")
		if err := insert(ctx, tx, id, asset, *in.Title, start, false, v.Assets.Clock()); err != nil {
			return taken(err, start)
		}
		made, err = one(ctx, tx, o.ID, id)
		return err
	})
	return made, err
}

// insert stores a chapter.
func insert(ctx context.Context, tx pgx.Tx, id, asset, title string, startMS int64, found bool, at time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_chapters (id, asset_id, title, start_ms, found, created_at) VALUES ($1, $2, $3, $4, $5, $6)`, id, asset, title, startMS, found, at)
	return err
}

// Change changes a chapter, which counts as set by hand from then on.
func (v Service) Change(ctx context.Context, o owner.Owner, id string, in Input) (changed Chapter, err error) {
	err = postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		was, err := one(ctx, tx, o.ID, id)
		if err != nil {
			return err
		}
		a, err := assets.Find(ctx, tx, o.ID, was.AssetID, "FOR UPDATE")
		if err != nil {
			return err
		}
		var f form.Form
		start := in.check(&f, a.DurationMS)
		if err := f.Err(); err != nil {
			return err
		}
		var to *int64
		if in.Start != nil {
			to = &start
		}
		if _, err = tx.Exec(ctx, `UPDATE media_chapters SET title = coalesce($2, title), start_ms = coalesce($3, start_ms), found = false WHERE id = $1`, id, in.Title, to); err != nil {
			return taken(err, start)
		}
		changed, err = one(ctx, tx, o.ID, id)
		return err
	})
	return changed, err
}

// Remove deletes a chapter; the one before it then lasts until the next. asset narrows to
// those of one; empty: any.
func (v Service) Remove(ctx context.Context, o owner.Owner, asset, id string) error {
	tag, err := v.Assets.DB.Exec(ctx, `DELETE FROM media_chapters c USING media_assets a WHERE c.id = $1 AND a.id = c.asset_id AND a.owner = $2 AND ($3 = '' OR a.id = $3)`, id, o.ID, asset)
	if err != nil {
		return fmt.Errorf("delete chapter: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	return nil
}
