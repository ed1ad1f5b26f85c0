package transcribe

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Input is the body of POST …/captions of an asset.
type Input struct {
	Language string `json:"language"` // empty: en
	Generate *bool  `json:"generate"` // absent: true
}

// BodyLimit bounds the body.
func (Input) BodyLimit() int64 { return 64 << 10 }

// View is the captions of an asset in a language, as callers see them.
type View struct {
	ID        string    `json:"id"`
	AssetID   string    `json:"asset_id"`
	Language  string    `json:"language"`
	Status    string    `json:"status"`
	Progress  int       `json:"progress"` // percent
	Cues      int       `json:"cues"`
	Engine    *string   `json:"engine"` // which one has made it
	URL       *string   `json:"url"`    // WebVTT, signed, for six hours; null until they are ready
	Error     *Failure  `json:"error"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Failure says why there are none.
type Failure struct {
	Code    decision.Code `json:"code"`
	Message string        `json:"message"`
}

// usual is the language where nobody names one.
const usual = "en"

// create answers POST …/captions: 202, because a job makes them.
func (v Service) create(t owner.Target, r *http.Request, in Input) (View, error) {
	if err := v.Available(r.Context()); err != nil {
		return View{}, err
	}
	var f form.Form
	if language := strings.ToLower(in.Language); language != "" && !validLanguage.MatchString(language) {
		f.Fail("language", "is not a language tag", "BCP 47, such as en or pt-BR")
	}
	if in.Generate != nil && !*in.Generate {
		f.Fail("generate", "is false", "true: captions of assets are generated")
	}
	if err := f.Err(); err != nil {
		return View{}, err
	}
	made, err := v.generate(r.Context(), t.Owner, t.ID, strings.ToLower(in.Language))
	if err != nil {
		return View{}, err
	}
	return v.view(r.Context(), made)
}

// generate finds the transcript of an asset in a language, or starts the job that makes
// it. It fails with not_found, with conflict for an asset that is not ready, and with
// TRANSCODE_001 when too many wait. One that has failed is tried again.
func (v Service) generate(ctx context.Context, o owner.Owner, id, language string) (row, error) {
	a, err := v.Assets.Any(ctx, o.ID, id)
	if err != nil {
		return row{}, err
	}
	if a.Status != assets.Ready {
		return row{}, apierror.Errorf(decision.Conflict, "It is %s. Captions are made of what is ready.", a.Status)
	}
	if language == "" {
		language = usual
	}
	at := v.now()
	r := row{ID: ident.New("trns"), AssetID: a.ID, Owner: o.ID, Account: o.Account, Language: language, Status: Processing, CreatedAt: at, UpdatedAt: at}
	if err := v.insert(ctx, r); errors.Is(err, errThere) {
		return one(ctx, v.DB, `asset_id = $1 AND language = $2`, a.ID, language)
	} else if err != nil {
		return row{}, err
	}
	return r, nil
}

// list answers GET …/captions with all of them; there are too few for pages.
func (v Service) list(t owner.Target, r *http.Request, _ httpapi.None) (map[string][]View, error) {
	if _, err := v.Assets.Any(r.Context(), t.Owner.ID, t.ID); err != nil {
		return nil, err
	}
	found, err := many(r.Context(), v.DB, `asset_id = $1 ORDER BY language`, t.ID)
	out := []View{}
	for _, one := range found {
		view, err := v.view(r.Context(), one)
		if err != nil {
			return nil, err
		}
		out = append(out, view)
	}
	return map[string][]View{"data": out}, err
}

// get answers GET …/captions/{lang} with the transcript, in the form that is asked for.
func (v Service) get(w http.ResponseWriter, r *http.Request, find func(*http.Request) (owner.Target, error)) error {
	t, err := find(r)
	if err != nil {
		return err
	}
	q, err := ask(r, "vtt")
	if err != nil {
		return err
	}
	found, err := one(r.Context(), v.DB, `owner = $1 AND asset_id = $2 AND language = $3`, t.Owner.ID, t.ID, inPath(r))
	if err != nil {
		return err
	}
	text, err := v.text(r.Context(), found)
	if err != nil {
		return err
	}
	return write(w, text, q.form)
}

// delete answers DELETE. A job that is making them ends without a trace.
func (v Service) delete(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	tag, err := v.DB.Exec(r.Context(), `DELETE FROM media_transcripts WHERE owner = $1 AND asset_id = $2 AND language = $3`, t.Owner.ID, t.ID, inPath(r))
	if err == nil && tag.RowsAffected() == 0 {
		err = &apierror.Error{Code: decision.NotFound}
	}
	return httpapi.None{}, err
}

// inPath is the language in the path; none that a row has, if it is not well formed.
func inPath(r *http.Request) string {
	language := strings.ToLower(chi.URLParam(r, "lang"))
	if !validLanguage.MatchString(language) {
		return ""
	}
	return language
}

// file is the last part of the address of captions.
func file(language string) string { return "captions/" + language + ".vtt" }

// serve hands captions to the bearer of the token of their asset.
func (v Service) serve(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Assets.Opened(r)
	if err != nil {
		return err
	}
	language, suffix, ok := strings.Cut(chi.URLParam(r, "file"), ".")
	if !ok || suffix != "vtt" && suffix != "srt" || !validLanguage.MatchString(language) {
		return &apierror.Error{Code: decision.NotFound}
	}
	found, err := one(r.Context(), v.DB, `asset_id = $1 AND language = $2`, a.ID, language)
	if err != nil {
		return err
	}
	text, err := v.text(r.Context(), found)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, max-age=3600")
	w.Header().Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	return write(w, text, suffix)
}

// view shows r.
func (v Service) view(ctx context.Context, r row) (View, error) {
	out := View{ID: r.ID, AssetID: r.AssetID, Language: r.Language, Status: r.Status, Progress: r.Progress, Cues: r.Cues, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
	if r.Status == Failed {
		out.Error = &Failure{r.ErrorCode, r.ErrorMessage}
	}
	if r.Status != Ready {
		return out, nil
	}
	url, err := v.Address(ctx, r.AssetID, r.Language)
	out.URL, out.Engine = &url, &r.Engine
	return out, err
}
