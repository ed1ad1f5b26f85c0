package media

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/media/analytics"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/capability"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/chapters"
	"sluice.dev/sluice/media/editor"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/fetch"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/ingest"
	"sluice.dev/sluice/media/live/moq/certificate"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/playback"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/media/voice"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/limits/refusals"
	"sluice.dev/sluice/platform/process/sandbox"
	"sluice.dev/sluice/platform/storage/postgres"
)

// engineTimeout bounds how long the engine may take to begin its answer: a
// low-latency playlist waits for the next part.
const engineTimeout = 15 * time.Second

// parts are the product's services.
type parts struct {
	streams    streams.Service
	assets     assets.Service
	playback   playback.Service
	captions   captions.Service
	analytics  analytics.Service
	ingest     ingest.Service
	legacy     legacy.Service
	bodies     capability.Service
	transcribe transcribe.Service
	voice      voice.Service
	vision     vision.Service
	engines    map[string]engines.Known // by the name of their product
	chapters   chapters.Service
	editor     editor.Service
	phone      phone.Service
	links      transports.Service
	moq        moqRoutes
	reader     engine.Reader // as which the product reads of the media engine
}

// newParts makes the services from a filled configuration.
func newParts(c Config) parts {
	jobs, err := river.NewClient(riverpgxv5.New(nil), &river.Config{})
	if err != nil {
		panic(err) // an empty configuration is a valid one
	}
	client := fetch.NewClient(c.Allow)
	look, tool := probe.New(), ffmpeg.Tool{Binary: c.FFmpeg, Dir: c.Scratch}
	if c.NeedSandbox && !sandbox.Check().Whole() {
		look, tool = probe.Prober{}, ffmpeg.Tool{}
	}
	bodies := fairshare.New(fairshare.Config{Places: c.Conversions})
	converting := fairshare.New(fairshare.Config{Places: max(1, c.Conversions/4)})
	keys := &signing.Keys{DB: outside(c.DB)}
	counter := views.Counter{DB: c.DB, Events: c.Events, Now: c.Now}
	if c.Endpoints.MoQ != "" && !c.MoQCertified {
		c.Endpoints.MoQHashes = hashes(&certificate.Source{Keys: keys, Now: c.Now})
	}
	link := c.Endpoints.Playback
	p := parts{
		streams:   streams.Service{DB: c.DB, Events: c.Events, Plans: c.Plans, Endpoints: c.Endpoints, Now: c.Now},
		analytics: analytics.Service{DB: c.DB, Plans: c.Plans, Now: c.Now},
		assets: assets.Service{DB: c.DB, Events: c.Events, Plans: c.Plans, Keys: keys, Client: client,
			Jobs: jobs, Playback: link, QueueLimit: c.QueueLimit, OwnerLimit: c.OwnerLimit, Fetches: fairshare.New(fairshare.Config{Places: assets.FetchPlaces}), Turns: &assets.Turns{},
			Cuts:  fairshare.New(fairshare.Config{Places: assets.CutPlaces}),
			Views: counter, Probe: look, FFmpeg: tool, Films: &ffmpeg.Films{Dir: c.Scratch, Most: c.StillBytes}, CutFilms: &assets.Cuts{}, Converting: converting, Refused: &refusals.Memory{}, Now: c.Now},
		bodies: capability.Service{Probe: look, FFmpeg: tool, Bodies: bodies, Converting: converting, Plans: c.Plans},
	}
	p.phone = phone.Service{DB: c.DB, Events: c.Events, Streams: p.streams, Plans: c.Plans, Box: c.Box, Settings: c.Phone, Now: c.Now}
	p.moq = moqRoutes{c.Endpoints}
	p.streams.Record = p.assets.OpenRecording
	p.chapters, p.editor = chapters.New(p.assets), editor.Service{Assets: p.assets}
	p.reader = engine.Reader{Keys: keys}
	webrtc := signalling.Relay{Base: c.EngineWebRTC, Client: &http.Client{Timeout: engineTimeout, Transport: p.reader.Transport(http.DefaultTransport)}}
	spoken := onair.Store{DB: c.DB, Now: c.Now}
	p.playback = playback.Service{OnAir: spoken, DB: c.DB, Streams: p.streams, Keys: keys, Views: counter, Playback: link, Engine: c.EngineHLS, Manifests: &dash.Live{}, WebRTC: webrtc,
		Client: &http.Client{Transport: p.reader.Transport(&http.Transport{ResponseHeaderTimeout: engineTimeout, MaxIdleConnsPerHost: 64})}, Now: c.Now}
	p.captions = captions.Service{OnAir: spoken, DB: c.DB, Events: c.Events, Streams: p.streams, Watch: p.playback.Watch, Playback: link, Now: c.Now}
	p.voice = voice.Service{Engine: c.speakers(), FFmpeg: tool}
	p.vision = vision.Service{Engine: c.seers(), FFmpeg: tool, Probe: look, Bodies: bodies, Converting: converting, Plans: c.Plans, Frame: p.assets.Frame}
	p.transcribe = transcribe.Service{DB: c.DB, Events: c.Events, Assets: p.assets, Product: c.transcription(), FFmpeg: tool, Bodies: bodies, Converting: converting,
		Working: fairshare.New(fairshare.Config{Places: transcribe.Places}), Plans: c.Plans, Jobs: jobs, QueueLimit: c.QueueLimit, OwnerLimit: c.OwnerLimit, Now: c.Now}
	p.captions.Speaks = p.transcribe.Speaks
	p.engines = map[string]engines.Known{engines.Transcribe: p.transcribe.Product, "captions": p.transcribe.Product,
		engines.Voice: p.voice.Engine, engines.Vision: p.vision.Engine}
	p.ingest = ingest.Service{Streams: p.streams, WebRTC: webrtc}
	p.links = transports.Service{DB: c.DB, Streams: p.streams, Settings: c.Transports, Available: c.Endpoints.Available, Now: c.Now}
	p.legacy = legacy.Service{DB: c.DB, Assets: p.assets, Client: legacy.NewClient(c.Allow), Calls: fairshare.New(fairshare.Config{Places: legacy.MaxCalls}), Jobs: jobs, Box: c.Box, Now: c.Now, Subscribe: c.Subscribe}
	return p
}

// outside is the database without the transaction that a repeatable request runs
// in: a signing key that is in use must not be rolled back with it.
func outside(db postgres.DB) postgres.DB {
	if joined, ok := db.(idempotency.DB); ok {
		return joined.Pool
	}
	return db
}

// privateRoutes and publicRoutes are parts with routes for identified callers and
// for viewers.
type (
	privateRoutes interface {
		Routes(chi.Router, httpapi.Adapter)
	}
	publicRoutes interface {
		PublicRoutes(chi.Router, httpapi.Adapter)
	}
)

// private lists the parts whose routes ask for a signed identity.
func (p parts) private() []privateRoutes {
	return []privateRoutes{p.streams, p.assets, p.playback, p.captions, p.analytics, p.ingest, p.legacy, p.bodies, p.transcribe, p.voice, p.vision, p.chapters, p.editor, p.phone, p.links, p.moq}
}

// public lists the parts whose routes anyone may call; each checks a token of
// its own.
func (p parts) public() []publicRoutes {
	return []publicRoutes{p.assets, p.playback, p.captions, p.ingest, p.transcribe, p.chapters}
}
