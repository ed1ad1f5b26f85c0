// Package vision says what is seen in pictures and films: POST /v1/vision. Text is read by
// Tesseract on this machine, or by a model that has an API like OpenAI's, which also
// describes what it sees; faces, colours and measures are found here.
package vision

import (
	"context"
	"net/http"
	"os"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/body"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Seer is an engine that sees.
type Seer interface {
	engines.Engine
	// Features are those that it finds, of Texts, Descriptions and Objects.
	Features() []string
	// Copy is the kind of copy of a picture that it is shown; empty: none.
	Copy() string
	// See adds what it sees in a copy, of a's features, to p.
	See(ctx context.Context, a Ask, s Shown, p *Picture) error
}

// Shown is a copy of a picture, made by us: the input of a folder of its own.
type Shown struct {
	Folder ffmpeg.Folder
	Scale  int // pixels of the picture for one of the copy
}

// Picture is what is seen in one. What was not asked for is left out.
type Picture struct {
	Time        *float64 `json:"time,omitempty"` // in seconds, of a film's
	Width       int      `json:"width"`          // upright, in pixels
	Height      int      `json:"height"`
	Format      string   `json:"format"` // jpeg, png, gif or webp; of a film's, png
	Measures    Measures `json:"measures"`
	Colors      []Color  `json:"colors,omitzero"` // the most frequent first
	Faces       []Face   `json:"faces,omitzero"`  // the surest first
	Text        *Text    `json:"text,omitempty"`
	Description string   `json:"description,omitempty"`
	Objects     []Object `json:"objects,omitzero"`
}

// Result is the answer of POST /v1/vision.
type Result struct {
	Features []string  `json:"features"` // that were looked for
	Pictures []Picture `json:"pictures"`
}

// Service is the product. Every field is required.
type Service struct {
	Engine     *engines.Product[Seer]
	FFmpeg     ffmpeg.Tool // its zero value: films answer 501
	Probe      probe.Prober
	Bodies     *fairshare.Pool // of the bodies that are here or on their way, by owner
	Converting *fairshare.Pool // of the conversions that run, by owner
	Plans      plans.Source
	// Frame makes a picture of an owner's asset at a place, in seconds.
	Frame func(ctx context.Context, o owner.Owner, asset string, at float64, use func(*os.File) error) error
}

// Path is where pictures are sent.
const Path = "/v1/vision"

// views are what is taken.
var views = body.Kind{Types: []string{"image/", "video/"}, Bytes: "the bytes of a picture or a film"}

// Routes adds the product's route to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) { r.Post(Path, a.Handle(v.serve)) }

// serve answers POST /v1/vision. What can be refused is refused before the body is
// read; a body holds a place of its sender's share until it is answered.
func (v Service) serve(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	if !v.Engine.Available(r.Context()) {
		return v.Engine.Missing()
	}
	a, err := Parse(r.URL.Query())
	if err != nil {
		return err
	}
	limit := body.Limit(v.Plans, o, v.Engine.Setting(r.Context()).MaxBytes)
	if a.Asset == "" {
		if err := views.Accept(r, limit); err != nil {
			return err
		}
	}
	folder, leave, err := body.Begin(v.Bodies, o.ID, v.FFmpeg)
	if err != nil {
		return err
	}
	defer leave()
	of, err := v.source(w, r, o, a, folder, limit)
	if err != nil {
		return err
	}
	var result Result
	err = v.Engine.Do(r.Context(), o.ID, func(ctx context.Context, e Seer, _ engines.Setting) error {
		a, err := able(a, e)
		if err != nil {
			return err
		}
		result = Result{Features: a.Features, Pictures: []Picture{}}
		return of(ctx, func(at *float64, file *os.File) error {
			p, err := v.see(ctx, e, a, file)
			p.Time = at
			result.Pictures = append(result.Pictures, p)
			return err
		})
	})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	httpapi.JSON(w, http.StatusOK, result)
	return nil
}

// able is a with the features that e has where it names none. It fails with
// not_implemented for one that e has not.
func able(a Ask, e Seer) (Ask, error) {
	have := append([]string{Faces, Colors}, e.Features()...)
	if len(a.Features) == 0 {
		a.Features = have
		return a, nil
	}
	here := Ask{Features: have}
	for _, f := range a.Features {
		if !here.Wants(f) {
			return a, apierror.Errorf(decision.NotImplemented, "There is no engine for %s here.", f)
		}
	}
	return a, nil
}

// see looks at one picture: in a confined process of ours, which makes the copy, and with
// the engine, which sees nothing else.
func (v Service) see(ctx context.Context, e Seer, a Ask, file *os.File) (Picture, error) {
	folder, err := v.FFmpeg.NewFolder()
	if err != nil {
		return Picture{}, err
	}
	defer func() { _ = folder.Close() }()
	f, err := confined(ctx, file, task{Faces: a.Wants(Faces), Colors: a.Wants(Colors), Copy: e.Copy()}, folder.Input())
	if err != nil {
		return Picture{}, err
	}
	return f.Picture, e.See(ctx, a, Shown{folder, f.Scale}, &f.Picture)
}
