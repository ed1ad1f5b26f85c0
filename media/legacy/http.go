package legacy

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/http/httpapi"
)

// bodyLimit bounds a body: a thousand ids of the greatest length, and room.
const bodyLimit = 512 << 10

// Routes adds the routes of /v1/migration/legacy to r, which must verify the
// caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	routes := map[string]func(http.ResponseWriter, *http.Request, owner.Owner) error{
		"POST /connect": v.connect, "GET /videos": v.videos, "POST /import": v.importVideos, "GET /status": v.status,
		"POST /webhooks/sync": v.webhooks, "GET /comparison": v.comparison, "POST /validate": v.validate, "DELETE /cleanup": v.cleanup}
	for pattern, h := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		r.Method(method, "/v1/migration/legacy"+path, a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			o, err := owner.From(r.Context())
			if err != nil {
				return err
			}
			return h(w, r, o)
		}))
	}
}

// connect answers POST /connect. The token is in no answer, not even this one.
func (v Service) connect(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	var in ConnectInput
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	c, err := v.Connect(r.Context(), o, in)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusCreated, map[string]any{"status": "connected", "base_url": c.BaseURL, "connected_at": c.ConnectedAt})
	return nil
}

// VideoView is one video of the provider, and what became of it here.
type VideoView struct {
	ID       string  `json:"id"`
	Title    string  `json:"title"`
	Duration float64 `json:"duration"`
	FileSize int64   `json:"file_size"`
	VODID    *string `json:"vod_id"` // null: not imported
}

// videos answers GET /videos with one page of the provider, as it is at this
// moment.
func (v Service) videos(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	var f form.Form
	cursor := r.URL.Query().Get("cursor")
	if len(cursor) > maxCursor {
		f.Fail("cursor", "is too long", "next_cursor of the page before")
	}
	if err := f.Err(); err != nil {
		return err
	}
	_, p, err := v.open(r.Context(), o)
	if err != nil {
		return err
	}
	leave, err := v.call(o)
	if err != nil {
		return err
	}
	defer leave()
	page, err := p.Videos(r.Context(), cursor, pageSize)
	if err != nil {
		return err
	}
	here := map[string]*string{}
	err = taken(r.Context(), v.DB, o.ID, page.ids(), func(t Taken) {
		if t.VODID != "" {
			here[t.LegacyID] = &t.VODID
		}
	})
	return httpapi.Result(w, http.StatusOK, listing(page, here), err)
}

// listing sets each video of a page beside the id that it has here.
func listing(page Page, here map[string]*string) map[string]any {
	data := []VideoView{}
	for _, v := range page.Videos {
		data = append(data, VideoView{v.ID, v.Title, v.Duration, v.Size, here[v.ID]})
	}
	var next *string
	if page.NextCursor != "" {
		next = &page.NextCursor
	}
	return map[string]any{"data": data, "pagination": map[string]any{"has_more": next != nil, "next_cursor": next}}
}

// importVideos answers POST /import with 202: the work is a job's.
func (v Service) importVideos(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	var in ImportInput
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	if err := v.Import(r.Context(), o, in); err != nil {
		return err
	}
	return v.answerStatus(w, r, o, http.StatusAccepted)
}

// status answers GET /status.
func (v Service) status(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	return v.answerStatus(w, r, o, http.StatusOK)
}

// answerStatus answers with where the import stands.
func (v Service) answerStatus(w http.ResponseWriter, r *http.Request, o owner.Owner, code int) error {
	s, err := v.Status(r.Context(), o)
	return httpapi.Result(w, code, s, err)
}

// SubscriptionView is a webhook of the provider as a body of POST /v1/webhooks,
// to which the caller adds a secret: the provider's is not known.
type SubscriptionView struct {
	URL          string   `json:"url"`
	Events       []string `json:"events"`
	Untranslated []string `json:"untranslated"` // events that have no counterpart here
}

// webhooks answers POST /webhooks/sync. Subscriptions are not made here: each
// needs a secret that its receiver knows, and only the caller has that.
func (v Service) webhooks(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	_, p, err := v.open(r.Context(), o)
	if err != nil {
		return err
	}
	leave, err := v.call(o)
	if err != nil {
		return err
	}
	defer leave()
	hooks, err := p.Webhooks(r.Context())
	if err != nil {
		return err
	}
	out := []SubscriptionView{}
	for _, h := range hooks {
		ours, unknown := Translate(h.Events)
		out = append(out, SubscriptionView{h.URL, ours, unknown})
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"data": out})
	return nil
}

// comparison answers GET /comparison.
func (v Service) comparison(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	leave, err := v.call(o)
	if err != nil {
		return err
	}
	defer leave()
	c, err := v.Compare(r.Context(), o)
	return httpapi.Result(w, http.StatusOK, c, err)
}

// validate answers POST /validate. It reads what is stored here, and does not
// ask the provider again.
func (v Service) validate(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	if _, _, err := v.open(r.Context(), o); err != nil {
		return err
	}
	out := Validation{Valid: true, Problems: []Problem{}}
	err := taken(r.Context(), v.DB, o.ID, nil, out.add)
	return httpapi.Result(w, http.StatusOK, out, err)
}

// cleanup forgets the connection, its token and which video came from where. The
// videos stay. A second call finds nothing, and succeeds too.
func (v Service) cleanup(w http.ResponseWriter, r *http.Request, o owner.Owner) error {
	if err := remove(r.Context(), v.DB, o.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
