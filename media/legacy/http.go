package legacy

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// bodyLimit bounds a body: a thousand ids of the greatest length, and room.
const bodyLimit = 512 << 10

// BodyLimit bounds the body.
func (ConnectInput) BodyLimit() int64 { return bodyLimit }

// BodyLimit bounds the body.
func (ImportInput) BodyLimit() int64 { return bodyLimit }

// Routes adds the routes of /v1/migration/legacy to r, which must verify the
// caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	const base = "/v1/migration/legacy"
	r.Post(base+"/connect", owner.Handle(a, http.StatusCreated, v.connect))
	r.Get(base+"/videos", owner.Handle(a, http.StatusOK, v.videos))
	r.Post(base+"/import", owner.Handle(a, http.StatusAccepted, v.importVideos))
	r.Get(base+"/status", owner.Handle(a, http.StatusOK, v.status))
	r.Post(base+"/webhooks/sync", owner.Handle(a, http.StatusOK, v.webhooks))
	r.Get(base+"/comparison", owner.Handle(a, http.StatusOK, v.comparison))
	r.Post(base+"/validate", owner.Handle(a, http.StatusOK, v.validate))
	r.Delete(base+"/cleanup", owner.Handle(a, http.StatusNoContent, v.cleanup))
}

// connect answers POST /connect. The token is in no answer, not even this one.
func (v Service) connect(o owner.Owner, r *http.Request, in ConnectInput) (map[string]any, error) {
	c, err := v.Connect(r.Context(), o, in)
	return map[string]any{"status": "connected", "base_url": c.BaseURL, "connected_at": c.ConnectedAt}, err
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
func (v Service) videos(o owner.Owner, r *http.Request, _ httpapi.None) (map[string]any, error) {
	var f form.Form
	cursor := r.URL.Query().Get("cursor")
	if len(cursor) > maxCursor {
		f.Fail("cursor", "is too long", "next_cursor of the page before")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	_, p, err := v.open(r.Context(), o)
	if err != nil {
		return nil, err
	}
	leave, err := v.call(o)
	if err != nil {
		return nil, err
	}
	defer leave()
	page, err := p.Videos(r.Context(), cursor, pageSize)
	if err != nil {
		return nil, err
	}
	here := map[string]*string{}
	err = eachImported(r.Context(), v.DB, o.ID, page.ids(), func(t Imported) {
		if t.VODID != "" {
			here[t.LegacyID] = &t.VODID
		}
	})
	return listing(page, here), err
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

// importVideos answers POST /import: the work is a job's.
func (v Service) importVideos(o owner.Owner, r *http.Request, in ImportInput) (StatusView, error) {
	if err := v.Import(r.Context(), o, in); err != nil {
		return StatusView{}, err
	}
	return v.Status(r.Context(), o)
}

// status answers GET /status.
func (v Service) status(o owner.Owner, r *http.Request, _ httpapi.None) (StatusView, error) {
	return v.Status(r.Context(), o)
}

// SubscriptionView is a webhook of the provider, and the subscription that stands for it here.
type SubscriptionView struct {
	ID           *string  `json:"id"` // null: there is none, see Problem
	URL          string   `json:"url"`
	Events       []string `json:"events"`
	Status       string   `json:"status,omitempty"` // disabled when it was made
	Created      bool     `json:"created"`
	Secret       string   `json:"secret,omitempty"`  // of one that was made: shown this once
	Problem      string   `json:"problem,omitempty"` // why there is no subscription
	Untranslated []string `json:"untranslated"`      // events that have no counterpart here
}

// Subscription is one that Subscriber has made, or found.
type Subscription struct {
	ID, Status string
	Secret     string // empty: it was there already
}

// Subscriber makes a subscription of an account that is disabled, unless it has one of that
// address and those events. It fails with invalid_request for what cannot be one.
type Subscriber func(ctx context.Context, account, url string, events []string) (Subscription, error)

// hookScope is what the caller needs besides migration:write: a subscription is made.
const hookScope = "webhooks:write"

// webhooks answers POST /webhooks/sync: each webhook becomes a subscription that is
// disabled, so that receivers hear from nobody whose signature they do not know yet.
func (v Service) webhooks(o owner.Owner, r *http.Request, _ httpapi.None) (map[string][]SubscriptionView, error) {
	if v.Subscribe == nil {
		return nil, apierror.Errorf(decision.NotImplemented, "Subscriptions cannot be made here.")
	}
	if c, _ := identity.From(r.Context()); o.Account == "" || !scopes.Covers(c.Scopes, hookScope) {
		return nil, &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is not granted to this credential", Expected: hookScope}}}
	}
	_, p, err := v.open(r.Context(), o)
	if err != nil {
		return nil, err
	}
	leave, err := v.call(o)
	if err != nil {
		return nil, err
	}
	defer leave()
	hooks, err := p.Webhooks(r.Context())
	if err != nil {
		return nil, err
	}
	out := []SubscriptionView{}
	for _, h := range hooks {
		view, err := v.adopt(r.Context(), o.Account, h)
		if err != nil {
			return nil, err
		}
		out = append(out, view)
	}
	return map[string][]SubscriptionView{"data": out}, nil
}

// adopt makes a subscription of one webhook. What is wrong with the webhook is in the view.
func (v Service) adopt(ctx context.Context, account string, h Webhook) (SubscriptionView, error) {
	view := SubscriptionView{URL: h.URL}
	view.Events, view.Untranslated = Translate(h.Events)
	if len(view.Events) == 0 {
		view.Problem = "none of its events has a counterpart here"
		return view, nil
	}
	made, err := v.Subscribe(ctx, account, h.URL, view.Events)
	if e, ok := errors.AsType[*apierror.Error](err); ok && (e.Code == decision.InvalidRequest || e.Code == decision.Conflict) {
		view.Problem = e.Error()
		return view, nil
	}
	if err != nil {
		return view, err
	}
	view.ID, view.Status, view.Secret, view.Created = &made.ID, made.Status, made.Secret, made.Secret != ""
	return view, nil
}

// comparison answers GET /comparison.
func (v Service) comparison(o owner.Owner, r *http.Request, _ httpapi.None) (Comparison, error) {
	leave, err := v.call(o)
	if err != nil {
		return Comparison{}, err
	}
	defer leave()
	return v.Compare(r.Context(), o)
}

// validate answers POST /validate. It reads what is stored here, and does not
// ask the provider again.
func (v Service) validate(o owner.Owner, r *http.Request, _ httpapi.None) (Validation, error) {
	out := Validation{Valid: true, Problems: []Problem{}}
	_, _, err := v.open(r.Context(), o)
	if err == nil {
		err = eachImported(r.Context(), v.DB, o.ID, nil, out.add)
	}
	return out, err
}

// cleanup forgets the connection, its token and which video came from where. The
// videos stay. A second call finds nothing, and succeeds too.
func (v Service) cleanup(o owner.Owner, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, remove(r.Context(), v.DB, o.ID)
}
