// Package analytics reports how much was watched and how much is stored.
package analytics

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Service reads; every field is required.
type Service struct {
	DB    postgres.DB
	Plans plans.Source
	Now   func() time.Time
}

// Routes adds the routes to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/analytics/views", owner.Handle(a, http.StatusOK, v.views))
	r.Get("/v1/analytics/storage", owner.Handle(a, http.StatusOK, v.storage))
}

// Bucket is what happened in one interval.
type Bucket struct {
	Start         time.Time `json:"start" db:"start"`
	Views         int       `json:"views" db:"views"`                   // viewers, counted once an hour
	UniqueViewers int       `json:"unique_viewers" db:"unique_viewers"` // counted once
	WatchSeconds  int       `json:"watch_seconds" db:"watch_seconds"`   // of live streams
}

// ViewsView is the answer of GET /v1/analytics/views.
type ViewsView struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Interval string    `json:"interval"`
	Current  *int      `json:"current_viewers"` // of the one subject asked for; else null
	Totals   Totals    `json:"totals"`
	Data     []Bucket  `json:"data"` // intervals with views only, oldest first
}

// Totals sums the whole range; a viewer of several intervals is one unique viewer.
type Totals struct {
	Views         int `json:"views" db:"views"`
	UniqueViewers int `json:"unique_viewers" db:"unique_viewers"`
	WatchSeconds  int `json:"watch_seconds" db:"watch_seconds"`
}

// Range is which views are asked for.
type Range struct {
	From, To time.Time
	Interval string // hour or day
	Subject  string // id of a stream or an asset; empty: all
}

// Bounds of a range: how long it is unless told, and at most.
const (
	defaultRange = 7 * 24 * time.Hour
	maxHours     = 31 * 24 * time.Hour
	maxDays      = 366 * 24 * time.Hour
)

// ParseRange reads the query of GET /v1/analytics/views; every bad parameter
// goes to f.
func ParseRange(f *form.Form, q url.Values, now time.Time) Range {
	r := Range{Interval: q.Get("interval"), To: instant(f, q, "to", now), Subject: q.Get("stream_id")}
	r.From = instant(f, q, "from", r.To.Add(-defaultRange))
	if r.Interval == "" {
		r.Interval = "day"
	}
	f.OneOf("interval", r.Interval, []string{"hour", "day"})
	longest := maxDays
	if r.Interval == "hour" {
		longest = maxHours
	}
	if length := r.To.Sub(r.From); length <= 0 || length > longest {
		f.Fail("from", "is not before to, or too long before it", "at most 31 days by the hour, 366 by the day")
	}
	for _, name := range []string{"stream_id", "asset_id"} {
		text := q.Get(name)
		if len(text) > 64 || strings.ContainsRune(text, 0) {
			f.Fail(name, "is not an id", "strm_…, vod_…, rec_… or clip_…")
		}
		if name == "asset_id" && text != "" {
			r.Subject = text
		}
	}
	return r
}

// instant reads a time or a date of the query, which stands for its first
// moment in UTC. Years that no row can have are refused: Postgres and Go
// disagree about what lies beyond them.
func instant(f *form.Form, q url.Values, name string, def time.Time) time.Time {
	text := q.Get(name)
	if text == "" {
		return def
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse(time.DateOnly, text)
	}
	if err != nil || t.Year() < 2000 || t.Year() > 2100 {
		f.Fail(name, "is not a time", "ISO 8601 timestamp or date")
		return def
	}
	return t.UTC()
}

// views answers GET /v1/analytics/views.
func (v Service) views(o owner.Owner, r *http.Request, _ httpapi.None) (ViewsView, error) {
	var f form.Form
	// The default range ends with the present second, and includes it.
	asked := ParseRange(&f, r.URL.Query(), v.Now().UTC().Truncate(time.Second).Add(time.Second))
	out := ViewsView{From: asked.From, To: asked.To, Interval: asked.Interval}
	err := f.Err()
	if err == nil {
		err = v.count(r.Context(), o.ID, asked, &out)
	}
	return out, err
}

const seen = ` FROM media_views WHERE owner = $1 AND first_at >= $2 AND first_at < $3 AND ($4 = '' OR subject = $4)`

const sums = `count(*)::int AS views, count(DISTINCT viewer)::int AS unique_viewers,
	coalesce(sum(extract(epoch FROM last_at - first_at)), 0)::int AS watch_seconds`

// count fills in the sums: those of each interval, and those of the whole
// range, which are not the sums of the intervals where viewers are counted
// once.
func (v Service) count(ctx context.Context, owner string, r Range, out *ViewsView) error {
	rows, _ := v.DB.Query(ctx, `SELECT date_trunc($5, hour, 'UTC') AS start, `+sums+seen+` GROUP BY 1 ORDER BY 1`,
		owner, r.From, r.To, r.Subject, r.Interval)
	var err error
	if out.Data, err = pgx.CollectRows(rows, pgx.RowToStructByName[Bucket]); err != nil {
		return fmt.Errorf("count views: %w", err)
	}
	for i := range out.Data {
		out.Data[i].Start = out.Data[i].Start.UTC()
	}
	rows, _ = v.DB.Query(ctx, `SELECT `+sums+seen, owner, r.From, r.To, r.Subject)
	if out.Totals, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Totals]); err != nil {
		return fmt.Errorf("sum views: %w", err)
	}
	if r.Subject == "" {
		return nil
	}
	n, err := views.Current(ctx, v.DB, owner, r.Subject, v.Now())
	out.Current = &n
	return err
}

// StorageView is the answer of GET /v1/analytics/storage.
type StorageView struct {
	UsedBytes  int64   `json:"used_bytes"`
	LimitBytes *int64  `json:"limit_bytes"` // null: no limit
	Percentage float64 `json:"percentage"`  // of the limit; 0 without one
	Data       []Kind  `json:"data"`
}

// Kind is what one kind of asset takes. Clips of other assets share their bytes
// and take none. The images of renders' overlays are no assets, but count: of
// render_images, Assets is how many renders have some.
type Kind struct {
	Kind   string `json:"kind" db:"kind"`
	Assets int    `json:"assets" db:"assets"`
	Bytes  int64  `json:"bytes" db:"bytes"`
}

// storage answers GET /v1/analytics/storage. used_bytes is what the quota is
// held against; the rows by kind say where it went.
func (v Service) storage(o owner.Owner, r *http.Request, _ httpapi.None) (out StorageView, err error) {
	rows, _ := v.DB.Query(r.Context(), `SELECT kind, count(*)::int AS assets, coalesce(sum(file_size), 0)::bigint AS bytes
		FROM media_assets WHERE owner = $1 AND status = 'ready' GROUP BY kind
		UNION ALL SELECT 'render_images', count(*)::int, sum(image_bytes)::bigint FROM media_renders WHERE owner = $1 AND image_bytes > 0 HAVING count(*) > 0 ORDER BY kind`, o.ID)
	if out.Data, err = pgx.CollectRows(rows, pgx.RowToStructByName[Kind]); err != nil {
		return out, fmt.Errorf("sum assets: %w", err)
	}
	if out.UsedBytes, err = files.Used(r.Context(), v.DB, o.ID); err != nil {
		return out, err
	}
	if limit := v.Plans.Of(o.Plan).StorageBytes; limit > 0 {
		out.LimitBytes = &limit
		out.Percentage = float64(out.UsedBytes*1000/limit) / 10
	}
	return out, nil
}
