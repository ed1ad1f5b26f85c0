// Package outbound is the one HTTP client for calls to addresses that customers
// choose: webhook deliveries, calls made by schedules, OAuth metadata.
//
// It stands between their URLs and our network. The address is checked when the
// connection is made, after the name was resolved, so that a name whose answer
// changes gains nothing. Redirects are not followed, proxies from the
// environment are not used, and both time and size are bounded.
package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Config says whom a Client may call and for how long. The zero Config calls
// public hosts over https.
type Config struct {
	// Allow lists addresses that may be called although they are not public, on
	// any port and also over http://. Nil: none.
	Allow []netip.Prefix
	// Timeout bounds a whole call, from the name lookup to the last byte read.
	// 0: 5 seconds.
	Timeout time.Duration
	// MaxBody is how many bytes of a response body are kept. 0: 16 KiB.
	MaxBody int64
	// MaxIdlePerHost is how many idle connections are kept to one host. 0: 8.
	MaxIdlePerHost int
	// Resolver looks names up. Nil: the machine's.
	Resolver *net.Resolver
	// RootCAs verify the servers' certificates. Nil: the machine's.
	RootCAs *x509.CertPool
	// UserAgent is sent when a request names none. Empty: "Sluice/1".
	UserAgent string
}

// Request is one call.
type Request struct {
	Method string // empty: POST
	URL    string
	Header http.Header // not changed; may be nil
	Body   []byte
	// Timeout bounds this call. 0: the Client's.
	Timeout time.Duration
}

// Result is what came back: any answer at all, also 3xx, 4xx and 5xx.
type Result struct {
	Status    int
	Header    http.Header
	Body      []byte // at most Config.MaxBody bytes of it
	Truncated bool   // the body was longer than Body
	Duration  time.Duration
}

// OK reports whether the answer counts as success: 200–299.
func (r Result) OK() bool { return r.Status >= 200 && r.Status < 300 }

// Client makes guarded calls. It keeps connections and is safe for use by many
// goroutines.
type Client struct {
	config   Config
	reach    reach
	resolver *net.Resolver
	open     *http.Client // https: public and allowed addresses
	inner    *http.Client // http, or a denied port: allowed addresses only
}

// New returns a Client for the Config.
func New(c Config) *Client {
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 16<<10)
	c.MaxIdlePerHost = cmp.Or(c.MaxIdlePerHost, 8)
	c.UserAgent = cmp.Or(c.UserAgent, "Sluice/1")
	c.Resolver = cmp.Or(c.Resolver, net.DefaultResolver)
	return &Client{
		config:   c,
		reach:    reach{allow: c.Allow},
		resolver: c.Resolver,
		open:     newHTTP(c, reach{allow: c.Allow}),
		inner:    newHTTP(c, reach{allow: c.Allow, allowOnly: true}),
	}
}

func newHTTP(c Config, r reach) *http.Client {
	dialer := &net.Dialer{Resolver: c.Resolver, Control: r.control}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // one hung HTTP/2 connection would hold up every call to its host
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
			Protocols:              &protocols,
			MaxIdleConns:           4096,
			MaxIdleConnsPerHost:    c.MaxIdlePerHost,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 32 << 10,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// control is called by the dialer with each resolved address, right before it
// connects to it.
func (r reach) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !r.permits(target.Addr()) {
		return errAddress
	}
	return nil
}

// Do makes the call. Every error is a *Failure; an answer with any status is
// not an error. No connection to the database is held meanwhile (postgres.Apart).
func (c *Client) Do(ctx context.Context, req Request) (result Result, err error) {
	if held := postgres.Apart(ctx, func(ctx context.Context) { result, err = c.do(ctx, req) }); held != nil {
		return Result{}, &Failure{Reason: ReasonConnection, Cause: held}
	}
	return result, err
}

func (c *Client) do(ctx context.Context, req Request) (Result, error) {
	t, err := parseTarget(req.URL)
	if err != nil {
		return Result{}, &Failure{Reason: ReasonURL, Cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(req.Timeout, c.config.Timeout))
	defer cancel()
	call, err := c.request(ctx, req)
	if err != nil {
		return Result{}, &Failure{Reason: ReasonURL, Cause: err}
	}
	client := c.open
	if t.url.Scheme == "http" || t.deniedPort() {
		client = c.inner
	}
	start := time.Now()
	resp, err := client.Do(call)
	if err != nil {
		return Result{Duration: time.Since(start)}, failure(err)
	}
	defer resp.Body.Close()
	body, truncated, err := c.head(resp.Body)
	result := Result{resp.StatusCode, resp.Header, body, truncated, time.Since(start)}
	if err != nil {
		return result, failure(err)
	}
	return result, nil
}

func (c *Client) request(ctx context.Context, req Request) (*http.Request, error) {
	call, err := http.NewRequestWithContext(ctx, cmp.Or(req.Method, http.MethodPost), req.URL, bytes.NewReader(req.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range req.Header {
		call.Header[http.CanonicalHeaderKey(name)] = values
	}
	if call.Header.Get("User-Agent") == "" {
		call.Header.Set("User-Agent", c.config.UserAgent)
	}
	traces.Inject(ctx, call.Header)
	return call, nil
}

// head reads the part of a body that is kept, and a little more, so that the
// connection of a modest answer can be used again.
func (c *Client) head(body io.Reader) (kept []byte, truncated bool, err error) {
	kept, err = io.ReadAll(io.LimitReader(body, c.config.MaxBody))
	if err != nil {
		return kept, false, err
	}
	rest, _ := io.CopyN(io.Discard, body, 64<<10)
	return kept, rest > 0, nil
}

// CloseIdle closes the connections that no call is using.
func (c *Client) CloseIdle() {
	c.open.CloseIdleConnections()
	c.inner.CloseIdleConnections()
}
