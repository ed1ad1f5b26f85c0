// Package passthrough streams binary bodies to the gateway's routes of the same
// path, and the answers back, with the caller's key (contract 8.10).
// Nothing is held on the way: what one side does not read, the other cannot
// send.
package passthrough

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/inflight"
	"sluice.dev/sluice/platform/process/telemetry/traces"
)

// Paths are the capability routes.
func Paths() []string {
	return []string{"/v1/transcribe", "/v1/captions", "/v1/voice", "/v1/vision", "/v1/render", "/v1/transcode", "/v1/mux"}
}

// DefaultMaxBody bounds a body, in bytes.
const DefaultMaxBody = 2 << 30

// Config says where the bodies go.
type Config struct {
	Gateway string // base URL, for instance http://127.0.0.1:8080
	// TLS says whom to believe that it is the gateway; nil: whom the system trusts.
	TLS     *tls.Config
	MaxBody int64 // bytes; 0: DefaultMaxBody
	Adapter httpapi.Adapter
	// Verifier knows the secrets by which the gateway is told the client's address.
	Verifier identity.Verifier
	// Transport makes the calls; nil: one that keeps connections.
	Transport http.RoundTripper
	Log       *slog.Logger // nil: slog.Default
}

// Proxy serves the capability routes. It expects access.Guard in front.
type Proxy struct {
	Config
	proxy *httputil.ReverseProxy
}

// New checks c.
func New(c Config) (*Proxy, error) {
	target, err := url.Parse(c.Gateway)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errors.New("the gateway's base URL must look like https://host")
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			TLSClientConfig:       c.TLS,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			DisableCompression:    true, // the body is the caller's as it is
			MaxIdleConnsPerHost:   256,
			IdleConnTimeout:       60 * time.Second,
			ExpectContinueTimeout: time.Second,
		}
	}
	p := &Proxy{Config: c}
	p.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del(identityheader.Header) // the gateway asks the key, not us
			c.Verifier.Vouch(r.Out.Header, r.In.Header)
			traces.Inject(r.Out.Context(), r.Out.Header)
		},
		FlushInterval: -1, // at once
		Transport:     c.Transport,
		ErrorHandler:  p.failed,
		ErrorLog:      slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	return p, nil
}

// buffered is what is held of a body while it is passed on: the transport's buffers.
const buffered = 64 << 10

// ServeHTTP passes one request on. An answer may begin before the body has
// ended.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > p.MaxBody {
		w.Header().Set("Connection", "close") // or the server would read it all the same
		p.Adapter.Error(w, r, p.tooLarge())
		return
	}
	inflight.Stream(r, buffered)
	c, sent := http.NewResponseController(w), newBody(r.Body)
	_ = c.EnableFullDuplex() // HTTP/2 always is, and says that it cannot
	defer sent.finish(c)
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	r.Body = http.MaxBytesReader(w, sent, p.MaxBody)
	p.proxy.ServeHTTP(w, r)
}

// failed answers when the gateway did not.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	var timeout net.Error
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.Adapter.Error(w, r, p.tooLarge())
		return
	}
	code := decision.BadGateway
	if errors.As(err, &timeout) && timeout.Timeout() {
		code = decision.GatewayTimeout
	}
	p.Adapter.Error(w, r, &apierror.Error{Code: code, Message: "The gateway could not be reached.", Cause: err})
}

// tooLarge is the error for a body beyond the bound.
func (p *Proxy) tooLarge() error {
	return apierror.Errorf(decision.Storage001, "The file is larger than %d bytes.", p.MaxBody)
}
