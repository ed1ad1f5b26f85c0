package media

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/moq/certificate"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/rtsp"
	"sluice.dev/sluice/media/live/moq/server"
	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// MoQ says how streams are published and watched by MoQ.
type MoQ struct {
	// Addr is the UDP address to listen on. Empty: MoQ is off.
	Addr string
	// Certificate is the one to show. Nil: one of our own, whose hash streams name.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Limits      server.Limits
}

// moqRoutes says how MoQ is spoken here.
type moqRoutes struct{ streams.Endpoints }

// moqView is the answer of GET /v1/moq.
type moqView struct {
	Draft     string       `json:"draft"`
	Version   string       `json:"version"` // in CLIENT_SETUP
	URL       string       `json:"url"`     // for WebTransport; a slash and a playback id follow
	QUIC      string       `json:"quic_url"`
	ALPN      string       `json:"alpn"`
	Catalogs  []moqCatalog `json:"catalogs"`
	Packaging string       `json:"packaging"`
	Hashes    []string     `json:"certificate_hashes,omitempty"`
}

// moqCatalog is the track of a catalog.
type moqCatalog struct {
	Track  string `json:"track"`
	Format string `json:"format"`
}

// Routes adds GET /v1/moq.
func (m moqRoutes) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/moq", owner.Handle(a, http.StatusOK, m.get))
}

// get answers GET /v1/moq.
func (m moqRoutes) get(owner.Owner, *http.Request, httpapi.None) (v moqView, err error) {
	if m.MoQ == "" || !m.Available {
		return v, apierror.Errorf(decision.NotImplemented, "MoQ is off here: it needs a media engine, and an address in SLUICE_MOQ_ADDR.")
	}
	v = moqView{Draft: wire.Draft, Version: fmt.Sprintf("%#x", wire.Version), URL: m.MoQ, QUIC: "moqt" + strings.TrimPrefix(m.MoQ, "https"),
		ALPN: wire.ALPN, Packaging: "cmaf", Catalogs: []moqCatalog{{packaging.CatalogMSF, "draft-ietf-moq-msf-01"}, {packaging.CatalogHang, "hang"}}}
	if m.MoQHashes != nil {
		v.Hashes = m.MoQHashes()
	}
	return v, nil
}

// hashes are those of the certificates of our own; none while the database does not
// answer.
func hashes(s *certificate.Source) func() []string {
	return func() []string {
		list, err := s.Hashes(context.Background())
		if err != nil {
			slog.Warn("hashes of the MoQ certificates are not known", "cause", err)
		}
		return list
	}
}

// serveMoQ serves MoQ until ctx ends, from the streams of an engine that speaks RTSP.
func serveMoQ(ctx context.Context, c Config, m MoQ, engine rtsp.Engine) error {
	p := newParts(c)
	if m.Certificate == nil {
		m.Certificate = (&certificate.Source{Keys: p.playback.Keys, Now: c.Now}).Get
	}
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", m.Addr)
	if err != nil {
		return err
	}
	s := server.New(server.Config{Playback: p.playback, Engine: engine, Certificate: m.Certificate,
		Respond: c.Respond, Log: c.log(), Limits: m.Limits})
	return s.Serve(ctx, conn)
}
