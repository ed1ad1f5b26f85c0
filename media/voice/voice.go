// Package voice speaks texts: POST /v1/voice. Its engines are voices of Piper on this
// machine, or an API like OpenAI's.
package voice

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Speaker is an engine that speaks.
type Speaker interface {
	engines.Engine
	// List are the voices that it has; none: it does not say.
	List(context.Context) ([]Voice, error)
	// Formats are those of Formats that Speak writes.
	Formats() []string
	// Speak speaks o in its format, one of Formats, into the input of a folder. It may
	// be called again with the same folder.
	Speak(ctx context.Context, o Order, to ffmpeg.Folder) error
}

// Service is the product. Every field is required.
type Service struct {
	Engine *engines.Product[Speaker]
	FFmpeg ffmpeg.Tool // its zero value: formats that the engine does not write answer 501
}

// Default are bounds of the engine that suit MaxText on a machine that has more to do; an
// edge waits five minutes.
var Default = engines.Setting{Timeout: 4 * time.Minute}

// Path is where texts are sent.
const Path = "/v1/voice"

// bodyTimeout is how long a body may take.
const bodyTimeout = 30 * time.Second

// Routes adds the product's routes to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post(Path, a.Handle(v.speak))
	r.Get(Path+"/voices", a.Handle(v.voices))
}

// Offer is what GET /v1/voice/voices answers.
type Offer struct {
	Voices    []Voice  `json:"voices"`
	Languages []string `json:"languages"`
	Formats   []string `json:"formats"`
	MaxText   int      `json:"max_characters"`
	// Open says that the engine may have further voices, whose names are passed on.
	Open bool `json:"open"`
}

// voices lists the voices of the engine in force.
func (v Service) voices(w http.ResponseWriter, r *http.Request) error {
	e, ok := v.Engine.First(r.Context())
	if !ok {
		return v.Engine.Missing()
	}
	found, err := e.List(r.Context())
	if err != nil {
		return err
	}
	offer := Offer{Voices: append([]Voice{}, found...), Languages: []string{}, Formats: Formats, MaxText: MaxText, Open: found == nil}
	if !v.FFmpeg.Available() {
		offer.Formats = e.Formats()
	}
	for _, voice := range offer.Voices {
		if !slices.Contains(offer.Languages, voice.Language) {
			offer.Languages = append(offer.Languages, voice.Language)
		}
	}
	httpapi.JSON(w, http.StatusOK, offer)
	return nil
}

// speak answers POST /v1/voice. What can be refused is refused before the account's
// turn is waited for; the engine is stopped when the caller leaves.
func (v Service) speak(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	if !v.Engine.Available(r.Context()) {
		return v.Engine.Missing()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	order, err := read(w, r)
	if err != nil {
		return err
	}
	folder, err := v.FFmpeg.NewFolder()
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // what is left of it is the machine's to clean
	file := ""
	err = v.Engine.Do(r.Context(), o.ID, func(ctx context.Context, e Speaker, s engines.Setting) (err error) {
		file, err = v.make(ctx, e, order, folder, s.Timeout)
		return err
	})
	if err != nil {
		return err
	}
	return answer(w, r, file, order.Format)
}

// make has e speak, and converts what it has said where it does not write the format.
func (v Service) make(ctx context.Context, e Speaker, o Order, folder ffmpeg.Folder, limit time.Duration) (string, error) {
	convert := !slices.Contains(e.Formats(), o.Format)
	if convert && !v.FFmpeg.Available() {
		return "", apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: ask for %s.", strings.Join(e.Formats(), " or "))
	}
	asked := o
	if convert {
		asked.Format = e.Formats()[0]
	}
	if err := e.Speak(ctx, asked, folder); err != nil || !convert {
		return folder.Input(), err
	}
	return folder.Output(), v.FFmpeg.Run(ctx, folder, ffmpeg.Speech(asked.Format, o.Format), maxSound, limit)
}

// types are the media types of Formats.
var types = map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg", "opus": "audio/ogg"}

// answer sends the sound.
func answer(w http.ResponseWriter, r *http.Request, name, format string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open sound: %w", err)
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", types[format])
	h.Set("Content-Disposition", `attachment; filename="speech.`+format+`"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
