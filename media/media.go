// Package media is the reference product: a small live media platform, stored in
// Postgres, that the gateway fronts out of the box. It is replaceable: it knows
// the platform by the signed identity header and by the event emitter it is
// given, and the platform knows it by its routes.
package media

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/capability"
	"sluice.dev/sluice/media/chapters"
	"sluice.dev/sluice/media/editor"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Config is what the product needs of its surroundings.
type Config struct {
	DB       postgres.DB       // required
	Events   events.Emitter    // required: where stream.started and the like go
	Identity identity.Verifier // its zero value refuses every request
	Respond  httpapi.Adapter
	Plans    plans.Source // nil: nothing is bounded
	// Endpoints are the public addresses of the media engine and of playback.
	// Empty addresses fall back to those of a local engine that is not there.
	Endpoints streams.Endpoints
	// MoQCertified says that MoQ shows a certificate of an authority, which players need
	// no hash of.
	MoQCertified bool
	// EngineHLS is the address below which the media engine serves HLS, such as
	// http://127.0.0.1:8888/live. Empty: playback of streams answers 501.
	EngineHLS string
	// EngineWebRTC is the address below which it takes WHIP and WHEP requests, such as
	// http://127.0.0.1:8889/live. Empty: they answer 501.
	EngineWebRTC string
	// Phone says how telephones reach the product.
	Phone phone.Settings
	// Transports are what streams may take of the operator's network, and send to it.
	Transports transports.Settings
	// Allow lists addresses that sources may have although they are not public.
	// Nil: none.
	Allow []netip.Prefix
	// QueueLimit is how many sources may wait to be fetched, and how many renditions
	// to be made; beyond it creation answers TRANSCODE_001. 0: 10,000.
	QueueLimit int
	// OwnerLimit is the same for one owner. 0: 100.
	OwnerLimit int
	// FFmpeg is the path of ffmpeg. Empty: what needs it answers 501.
	FFmpeg string
	// Engines are the settings in force of engines, by product. Nil: those of an empty section.
	Engines func(context.Context) engines.Settings
	// EngineKey finds the variables that keys of engines stand in. Nil: there are none.
	EngineKey func(name string) (value string, ok bool)
	// Speech is the path of the built-in engine of transcription; see speech.Program.
	// Empty: there is none.
	Speech string
	// Voice is the program that speaks (voice.Builtin has what must lie beside it), Voices a
	// folder of further voices. Empty: there is none.
	Voice, Voices string
	// Tesseract is the path of what reads the text of pictures. Empty: none is read.
	Tesseract string
	// NeedSandbox refuses films, and conversions of them, where the machine cannot keep
	// what reads them from the network and from other files. Else it does what the
	// machine allows.
	NeedSandbox bool
	// Scratch is the folder for files that ffmpeg works on. Empty: os.TempDir.
	Scratch string
	// StillBytes bounds the copies of films that stills are made of, and so each film
	// of which there are stills, in bytes. 0: 4 GiB.
	StillBytes int64
	// Conversions is how many callers may wait for an answer of ffmpeg at once; a
	// quarter of them, and at least one, is worked for. One owner has a quarter of
	// either. Beyond it they get TRANSCODE_001. 0: 8.
	Conversions int
	// Box seals the tokens of providers that accounts move in from. Nil:
	// POST /v1/migration/legacy/connect answers 501.
	Box *secretbox.Box
	// Subscribe makes subscriptions of the webhooks of providers that accounts move in
	// from. Nil: POST /v1/migration/legacy/webhooks/sync answers 501.
	Subscribe legacy.Subscriber
	// AnswerSecret protects the answers that are kept for repeated requests; see
	// idempotency.Config.
	AnswerSecret [32]byte
	// FormerAnswerSecrets opened those of before.
	FormerAnswerSecrets [][32]byte
	Now                 func() time.Time // nil: time.Now
}

// Confined are the functions that the product runs in a sandbox: the program's main
// hands them to sandbox.Main.
func Confined() map[string]func() int {
	return map[string]func() int{probe.Function: probe.Child, probe.CutFunction: probe.CutChild, vision.Function: vision.Child}
}

// New returns the product's handler: /health for anyone, /v1/playback for viewers,
// the rest for callers whom an edge has identified.
func New(c Config) http.Handler {
	c.fill()
	repeatable := c.joinAnswers()
	p := newParts(c)
	r := c.Respond.Router(c.Respond.Recover, c.Respond.Text)
	r.Get("/health", c.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error { return c.health(w, r, p.engines) }))
	for _, part := range p.public() {
		part.PublicRoutes(r, c.Respond)
	}
	r.Group(func(r chi.Router) {
		r.Use(c.Identity.Require(c.Respond), repeatable)
		for _, part := range p.private() {
			part.Routes(r, c.Respond)
		}
	})
	return r
}

// joinAnswers makes POSTs with an Idempotency-Key safe to repeat: from here on, what
// a request does and the answer that is kept of it commit together. Uploads are
// left out: their bodies are too large to be compared.
func (c *Config) joinAnswers() func(http.Handler) http.Handler {
	m := idempotency.New(idempotency.Config{DB: c.DB, Respond: c.Respond, Secret: c.AnswerSecret, Former: c.FormerAnswerSecrets, Now: c.Now})
	c.DB = idempotency.DB{Pool: c.DB}
	return func(next http.Handler) http.Handler {
		wrapped := m.Wrap(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == assets.UploadPath || slices.Contains(capability.Paths(), r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			wrapped.ServeHTTP(w, r)
		})
	}
}

// transcodings is how many run at once: each keeps two threads busy.
const transcodings = 1

// Queues are those that the product's jobs run in.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{assets.Queue: {MaxWorkers: assets.FetchPlaces}, assets.TranscodeQueue: {MaxWorkers: transcodings}, assets.CutQueue: {MaxWorkers: assets.CutPlaces},
		transcribe.Queue: {MaxWorkers: transcribe.Places}}
}

// AddWorkers registers the product's jobs. They run in Queues, which the caller's
// River client must serve.
func AddWorkers(workers *river.Workers, c Config) {
	c.fill()
	p := newParts(c)
	river.AddWorker(workers, &assets.FetchWorker{Service: p.assets})
	river.AddWorker(workers, &assets.TranscodeWorker{Service: p.assets})
	river.AddWorker(workers, &assets.CutWorker{Service: p.assets})
	river.AddWorker(workers, &transcribe.Worker{Service: p.transcribe})
	river.AddWorker(workers, &chapters.DetectWorker{Service: p.chapters})
	river.AddWorker(workers, &editor.RenderWorker{Service: p.editor})
	river.AddWorker(workers, &legacy.ImportWorker{Service: p.legacy})
}

// fill puts the defaults where the configuration says nothing.
func (c *Config) fill() {
	if c.Plans == nil {
		c.Plans = plans.Table{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.QueueLimit == 0 {
		c.QueueLimit = 10_000
	}
	if c.OwnerLimit == 0 {
		c.OwnerLimit = 100
	}
	if c.StillBytes == 0 {
		c.StillBytes = 4 << 30
	}
	if c.Conversions == 0 {
		c.Conversions = 8
	}
	e := &c.Endpoints
	fallback(&c.Phone.Host, "localhost")
	fallback(&e.RTMP, "rtmp://127.0.0.1:1935/live")
	fallback(&e.SRT, "srt://127.0.0.1:8890")
	fallback(&e.WebRTC, "http://127.0.0.1:8080/v1/ingest")
	fallback(&e.Playback, "http://127.0.0.1:8080/v1/playback")
}

// fallback sets an address that is not configured.
func fallback(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// health answers 200 when the database answers, else 503.
func (c *Config) health(w http.ResponseWriter, r *http.Request, products map[string]engines.Known) error {
	var one int
	if err := c.DB.QueryRow(r.Context(), `SELECT 1`).Scan(&one); err != nil {
		return &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"status": "ok", "ingest_available": c.Endpoints.Available, "surfaces": c.surfaces(r.Context(), products), "engines": engines.States(r.Context(), products)})
	return nil
}
