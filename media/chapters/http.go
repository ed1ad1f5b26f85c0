package chapters

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Service is what can be done with chapters.
type Service struct {
	Assets assets.Service // whose database, ffmpeg, queues and clock this uses
	// Captions returns captions of an asset as WebVTT, or none. Nil: those of the stream
	// that it is of.
	Captions func(context.Context, assets.Asset) (string, error)
}

// New returns a Service for assets.
func New(a assets.Service) Service {
	v := Service{Assets: a}
	v.Captions = v.ofStream
	return v
}

// ofStream are the captions of the stream that an asset was recorded of: the first track
// with content.
func (v Service) ofStream(ctx context.Context, a assets.Asset) (text string, err error) {
	if a.StreamID == "" {
		return "", nil
	}
	err = v.Assets.DB.QueryRow(ctx, `SELECT content FROM media_captions WHERE stream_id = $1 AND content <> '' ORDER BY created_at, language LIMIT 1`, a.StreamID).Scan(&text)
	if err = postgres.NotFound(err, "read captions"); apierror.Code(err) == decision.NotFound {
		return "", nil
	}
	return text, err
}

// List is a page of chapters; of one asset it is all of them, with its last search and the
// addresses for players.
type List struct {
	paging.List[Chapter]
	Detection *Detection `json:"detection,omitempty"` // absent: there was none
	VTTURL    string     `json:"vtt_url,omitempty"`   // signed, for six hours
	PlayerURL string     `json:"player_url,omitempty"`
}

// Routes adds both doors to r, which must verify the caller's identity first: that of all
// chapters, and that of one asset's.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	const all, single = "/v1/chapters", "/v1/chapters/{id}"
	target := owner.InPath("chap")
	r.Get(all, a.Handle(v.list))
	r.Post(all, owner.Handle(a, http.StatusCreated, v.create))
	r.Post(all+"/detect", owner.Handle(a, http.StatusAccepted, v.detect))
	r.Get(single, owner.HandleFor(a, http.StatusOK, target, v.get))
	r.Patch(single, owner.HandleFor(a, http.StatusOK, target, v.change))
	r.Delete(single, owner.HandleFor(a, http.StatusNoContent, target, v.remove))
	for path, kind := range map[string]assets.Kind{"/v1/vod": assets.VOD, "/v1/recordings": assets.Recording, "/v1/clips": assets.Clip} {
		asset, of := owner.InPath(kind.Prefix()), path+"/{id}/chapters"
		r.Post(of, owner.HandleFor(a, http.StatusCreated, asset, v.add))
		r.Get(of, owner.HandleFor(a, http.StatusOK, asset, v.ofAsset))
		r.Delete(of+"/{chapter}", owner.HandleFor(a, http.StatusNoContent, asset, v.removeFrom))
	}
}

// list answers GET /v1/chapters: those of ?asset_id=, as JSON or, with ?format=vtt, as
// WebVTT; without it a page of all of them, newest first.
func (v Service) list(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	var f form.Form
	q := r.URL.Query()
	p, details := chapters.Parse(q)
	f.Add(details)
	id, format := q.Get("asset_id"), q.Get("format")
	if format == "" {
		format = "json"
	}
	f.OneOf("format", format, []string{"json", "vtt"})
	if format == "vtt" && id == "" {
		f.Fail("asset_id", "is missing", "id of a video, a recording or a clip")
	}
	if err := f.Err(); err != nil {
		return err
	}
	if id == "" {
		return v.page(w, r, o, p)
	}
	a, err := assets.Find(r.Context(), v.Assets.DB, o.ID, id, "")
	if err != nil {
		return err
	}
	if format == "vtt" {
		return v.writeVTT(w, r, a.ID)
	}
	out, err := v.whole(r.Context(), a)
	if err == nil {
		httpapi.JSON(w, http.StatusOK, out)
	}
	return err
}

// page answers with a part of all chapters.
func (v Service) page(w http.ResponseWriter, r *http.Request, o owner.Owner, p paging.Page) error {
	found, err := chapters.Read(r.Context(), v.Assets.DB, p, `a.owner = $1`, o.ID)
	return httpapi.Result(w, http.StatusOK, List{List: found}, err)
}

// whole is the list of one asset's chapters.
func (v Service) whole(ctx context.Context, a assets.Asset) (out List, err error) {
	if out.Data, err = of(ctx, v.Assets.DB, a.ID); err != nil {
		return out, err
	}
	total := len(out.Data)
	out.Pagination = paging.Info{Total: &total, Limit: maxChapters, Offset: new(int)}
	s, err := lookup(ctx, v.Assets.DB, `asset_id = $1`, a.ID)
	if err == nil {
		d := s.view()
		out.Detection = &d
	} else if apierror.Code(err) != decision.NotFound {
		return out, err
	}
	if a.Status != assets.Ready {
		return out, nil
	}
	if out.VTTURL, err = v.Assets.Link(ctx, a, vttFile); err == nil {
		out.PlayerURL, err = v.Assets.Link(ctx, a, playerFile)
	}
	return out, err
}

// create answers POST /v1/chapters.
func (v Service) create(o owner.Owner, r *http.Request, in AddInput) (Chapter, error) {
	if in.AssetID == "" {
		var f form.Form
		Input{in.Title, in.Start}.check(&f, 0)
		f.Fail("asset_id", "is missing", "id of a video, a recording or a clip")
		return Chapter{}, f.Err()
	}
	return v.Add(r.Context(), o, in.AssetID, Input{in.Title, in.Start})
}

// detect answers POST /v1/chapters/detect: 202, because a job looks for them.
func (v Service) detect(o owner.Owner, r *http.Request, in DetectInput) (Detection, error) {
	return v.Detect(r.Context(), o, in)
}

// get answers GET on one.
func (v Service) get(t owner.Target, r *http.Request, _ httpapi.None) (Chapter, error) {
	return one(r.Context(), v.Assets.DB, t.Owner.ID, t.ID)
}

// change answers PATCH.
func (v Service) change(t owner.Target, r *http.Request, in Input) (Chapter, error) {
	return v.Change(r.Context(), t.Owner, t.ID, in)
}

// remove answers DELETE.
func (v Service) remove(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, v.Remove(r.Context(), t.Owner, "", t.ID)
}

// add answers POST …/{id}/chapters.
func (v Service) add(t owner.Target, r *http.Request, in Input) (Chapter, error) {
	return v.Add(r.Context(), t.Owner, t.ID, in)
}

// ofAsset answers GET …/{id}/chapters, in order.
func (v Service) ofAsset(t owner.Target, r *http.Request, _ httpapi.None) (map[string][]Chapter, error) {
	a, err := assets.Find(r.Context(), v.Assets.DB, t.Owner.ID, t.ID, "")
	if err != nil {
		return nil, err
	}
	list, err := of(r.Context(), v.Assets.DB, a.ID)
	return map[string][]Chapter{"data": list}, err
}

// removeFrom answers DELETE …/{id}/chapters/{chapter}.
func (v Service) removeFrom(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, v.Remove(r.Context(), t.Owner, t.ID, chi.URLParam(r, "chapter"))
}

// writeVTT answers with the chapters of an asset as WebVTT.
func (v Service) writeVTT(w http.ResponseWriter, r *http.Request, asset string) error {
	list, err := of(r.Context(), v.Assets.DB, asset)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/vtt; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(vtt(list))) // to a caller who may have gone
	return nil
}

// vtt writes chapters as WebVTT (W3C WebVTT, 3.1: chapter cues do not overlap). The last one
// of a film whose length is not known lasts as long as WebVTT can write easily.
func vtt(list []Chapter) string {
	var out strings.Builder
	out.WriteString("WEBVTT\n")
	safe := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	for _, c := range list {
		end := 99*3600.0 + c.Start
		if c.End != nil {
			end = *c.End
		}
		if end > c.Start {
			fmt.Fprintf(&out, "\n%s\n%s --> %s\n%s\n", c.ID, stamp(c.Start), stamp(end), safe.Replace(c.Title))
		}
	}
	return out.String()
}

// stamp writes a time as WebVTT does.
func stamp(at float64) string {
	ms := int64(at*1000 + 0.5)
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}
