package assets

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Rendition is an asset's film in another size, a row of media_renditions.
type Rendition struct {
	ID           string        `db:"id"`
	AssetID      string        `db:"asset_id"`
	Owner        string        `db:"owner"`
	Plan         string        `db:"plan"` // whose limits hold
	Profile      string        `db:"profile"`
	Status       Status        `db:"status"` // Processing, Ready or Failed
	FileID       string        `db:"file_id"`
	Width        int           `db:"width"`
	Height       int           `db:"height"`
	FileSize     int64         `db:"file_size"`
	ErrorCode    decision.Code `db:"error_code"`
	ErrorMessage string        `db:"error_message"`
	CreatedAt    time.Time     `db:"created_at"`
	UpdatedAt    time.Time     `db:"updated_at"`
}

// Resolution is the size of the picture, such as 640x360; "" before it is known.
func (r Rendition) Resolution() string { return Asset{Width: r.Width, Height: r.Height}.Resolution() }

// complete makes a ready rendition of r and its file.
func (r *Rendition) complete(s Stored) {
	r.Status, r.FileID, r.FileSize, r.Width, r.Height = Ready, s.FileID, s.Size, s.Info.Width, s.Info.Height
}

// fail ends r without a file.
func (r *Rendition) fail(code decision.Code, message string) {
	r.Status, r.FileID, r.ErrorCode, r.ErrorMessage = Failed, "", code, message
}

// newRendition is a rendition of a that is yet to be made.
func (v Service) newRendition(o owner.Owner, asset, profile string) Rendition {
	at := now(v.Now)
	return Rendition{ID: ident.New("rend"), AssetID: asset, Owner: o.ID, Plan: o.Plan, Profile: profile, Status: Processing, CreatedAt: at, UpdatedAt: at}
}

// fits says whether a film of a's size can be made into profile: TRANSCODE_003
// when its picture would have to grow, STORAGE_002 when it has none.
func fits(a Asset, profile ffmpeg.Profile) error {
	switch {
	case a.Height == 0:
		return apierror.Errorf(decision.Storage002, "The file has no picture.")
	case a.Height < profile.Height:
		return apierror.Errorf(decision.Transcode003, "The source is %d pixels high, too low for %s: pictures are not enlarged.", a.Height, profile.Name)
	}
	return nil
}

const renditionColumns = `id, asset_id, owner, plan, profile, status, file_id, width, height, file_size, error_code, error_message, created_at, updated_at`

// saveRendition inserts r, or writes everything that may change of it.
func saveRendition(ctx context.Context, tx pgx.Tx, r Rendition) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_renditions (`+renditionColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (id) DO UPDATE SET status = excluded.status, file_id = excluded.file_id, width = excluded.width, height = excluded.height,
			file_size = excluded.file_size, error_code = excluded.error_code, error_message = excluded.error_message, updated_at = excluded.updated_at`,
		r.ID, r.AssetID, r.Owner, r.Plan, r.Profile, r.Status, r.FileID, r.Width, r.Height, r.FileSize, r.ErrorCode, r.ErrorMessage, r.CreatedAt, r.UpdatedAt)
	if err != nil {
		return fmt.Errorf("save rendition: %w", err)
	}
	return nil
}

// renditions reads those that a condition finds, in the order that it ends with.
func renditions(ctx context.Context, db postgres.DB, where string, args ...any) ([]Rendition, error) {
	rows, _ := db.Query(ctx, `SELECT `+renditionColumns+` FROM media_renditions WHERE `+where, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Rendition])
	if err != nil {
		return nil, fmt.Errorf("read renditions: %w", err)
	}
	return found, nil
}

// rendition reads one by its id, or not_found. lock is empty or FOR UPDATE.
func rendition(ctx context.Context, db postgres.DB, id, lock string) (Rendition, error) {
	found, err := renditions(ctx, db, `id = $1 `+lock, id)
	if err == nil && len(found) == 0 {
		err = &apierror.Error{Code: decision.NotFound}
	}
	if err != nil {
		return Rendition{}, err
	}
	return found[0], nil
}

// countRenditions is the length of the transcoding queue.
func countRenditions(ctx context.Context, tx pgx.Tx, owner string) (line, error) {
	return countLine(ctx, tx, owner, `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_renditions WHERE status = 'processing'`)
}

// RenditionView is a rendition as callers see it.
type RenditionView struct {
	ID         string       `json:"id"`
	Profile    string       `json:"profile"`
	Status     Status       `json:"status"`
	Resolution *string      `json:"resolution"`
	FileSize   *int64       `json:"file_size"`
	URL        *string      `json:"url"` // signed, for six hours
	Error      *FailureView `json:"error"`
	CreatedAt  time.Time    `json:"created_at"`
	UpdatedAt  time.Time    `json:"updated_at"`
}

// viewRendition shows r. key signs its address.
func (v Service) viewRendition(r Rendition, key []byte) RenditionView {
	out := RenditionView{ID: r.ID, Profile: r.Profile, Status: r.Status, Resolution: some(r.Resolution()), FileSize: some(r.FileSize),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
	if r.Status == Ready {
		out.URL = some(v.address(r.ID, key, linkTTL))
	}
	if r.Status == Failed {
		out.Error = &FailureView{Code: r.ErrorCode, Message: r.ErrorMessage}
	}
	return out
}

// known turns the name of a profile into it, or TRANSCODE_002.
func known(name string) (ffmpeg.Profile, error) {
	p, ok := ffmpeg.ProfileOf(name)
	if !ok {
		return p, &apierror.Error{Code: decision.Transcode002, Details: []decision.Detail{
			{Field: "profile", Issue: "is not a known profile", Expected: profileList()}}}
	}
	return p, nil
}
