package editor

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// View is a render as callers see it.
type View struct {
	ID        string            `json:"id"`
	Title     string            `json:"title"`
	Status    Status            `json:"status"`
	Progress  int               `json:"progress"` // percent
	Duration  float64           `json:"duration"` // seconds, of the video
	Width     int               `json:"width"`
	Height    int               `json:"height"`
	AssetID   *string           `json:"asset_id"` // the video, once it is ready
	Error     *FailureView      `json:"error"`
	Metadata  map[string]string `json:"metadata"`
	Timeline  json.RawMessage   `json:"timeline,omitempty"` // not in lists
	Output    json.RawMessage   `json:"output,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
}

// FailureView says why a render failed.
type FailureView struct {
	Code    decision.Code `json:"code"`
	Message string        `json:"message"`
}

// Routes adds the editor to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Group(func(r chi.Router) {
		r.Use(v.present(a))
		v.routes(r, a)
	})
}

// present answers 501 to everything where there is no ffmpeg, as the registry says.
func (v Service) present(a httpapi.Adapter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if !v.Assets.FFmpeg.Available() {
				return apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: videos are not edited.")
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// routes adds the routes.
func (v Service) routes(r chi.Router, a httpapi.Adapter) {
	const all, single = "/v1/editor/renders", "/v1/editor/renders/{id}"
	target := owner.InPath("rndr")
	r.Post(all, owner.Handle(a, http.StatusAccepted, v.create))
	r.Get(all, owner.Handle(a, http.StatusOK, v.list))
	r.Get(single, owner.HandleFor(a, http.StatusOK, target, v.get))
	r.Delete(single, owner.HandleFor(a, http.StatusNoContent, target, v.delete))
	r.Post(single+"/cancel", owner.HandleFor(a, http.StatusOK, target, v.cancel))
	r.Post("/v1/editor/preview", v.preview(a))
}

// create answers POST: 202, because a job makes the video.
func (v Service) create(o owner.Owner, r *http.Request, in Input) (View, error) {
	made, err := v.Create(r.Context(), o, in)
	return view(made), err
}

// list answers GET on all of them.
func (v Service) list(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[View], error) {
	var f form.Form
	p, details := renders.Parse(r.URL.Query())
	f.Add(details)
	var statuses []string
	if text := r.URL.Query().Get("status"); text != "" {
		statuses = strings.SplitN(text, ",", len(Statuses)+1)
		for _, s := range statuses {
			f.OneOf("status", s, Statuses)
		}
	}
	if err := f.Err(); err != nil {
		return paging.List[View]{}, err
	}
	found, err := list(r.Context(), v.Assets.DB, o.ID, statuses, p)
	return paging.Map(found, view), err
}

// get answers GET on one.
func (v Service) get(t owner.Target, r *http.Request, _ httpapi.None) (View, error) {
	found, err := one(r.Context(), v.Assets.DB, `owner = $1 AND id = $2`, t.Owner.ID, t.ID)
	return view(found), err
}

// delete answers DELETE.
func (v Service) delete(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, v.Delete(r.Context(), t.Owner, t.ID)
}

// cancel answers POST …/cancel.
func (v Service) cancel(t owner.Target, r *http.Request, _ httpapi.None) (View, error) {
	found, err := v.Cancel(r.Context(), t.Owner, t.ID)
	return view(found), err
}

// view shows a render.
func view(r Render) View {
	out := View{ID: r.ID, Title: r.Title, Status: r.Status, Progress: r.Progress, Duration: float64(r.DurationMS) / 1000, Width: r.Width, Height: r.Height,
		Metadata: r.Metadata, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
	if r.AssetID != "" {
		out.AssetID = &r.AssetID
	}
	if r.Status == Failed {
		out.Error = &FailureView{r.ErrorCode, r.ErrorMessage}
	}
	var asked struct{ Timeline, Output json.RawMessage }
	if json.Unmarshal(r.Request, &asked) == nil { // ours: lists have none
		out.Timeline, out.Output = asked.Timeline, asked.Output
	}
	return out
}
