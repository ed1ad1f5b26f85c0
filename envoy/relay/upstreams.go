package relay

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"sluice.dev/sluice/filters/edgeapi"
)

const (
	dialTimeout = time.Second
	openTimeout = 3 * time.Second // until a replica says that it serves a stream
	maxMessage  = 64 << 20        // of a discovery message, in bytes
)

// upstreams are the replicas, of which one is preferred until it fails.
type upstreams struct {
	cfg       Config
	conns     []*grpc.ClientConn
	http      *http.Client
	preferred atomic.Int64
}

func newUpstreams(c Config) (*upstreams, error) {
	u := &upstreams{cfg: c}
	creds := insecure.NewCredentials()
	if c.TLS != nil {
		creds = credentials.NewTLS(c.TLS.Clone())
	}
	for _, addr := range c.Upstreams {
		conn, err := grpc.NewClient("dns:///"+strings.TrimSpace(addr),
			grpc.WithTransportCredentials(creds),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: dialTimeout,
				Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second}}))
		if err != nil {
			return nil, err
		}
		u.conns = append(u.conns, conn)
	}
	u.http = &http.Client{Transport: u.transport()}
	return u, nil
}

func (u *upstreams) close() {
	for _, c := range u.conns {
		_ = c.Close()
	}
}

// transport sends each request to the preferred replica, or to the next one that
// can be connected to.
func (u *upstreams) transport() http.RoundTripper {
	var config *tls.Config
	if u.cfg.TLS != nil {
		config = u.cfg.TLS.Clone()
	}
	return failover{u, &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 3 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
	}}
}

type failover struct {
	u    *upstreams
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A request whose body has been read is
// not sent twice.
func (f failover) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &readOnce{ReadCloser: r.Body}
	var failure error
	for i, n := range f.u.order() {
		q := r.Clone(r.Context())
		if r.Body != nil {
			q.Body = body
		}
		q.URL.Scheme, q.URL.Host = "http", strings.TrimSpace(f.u.cfg.Upstreams[n])
		if f.u.cfg.TLS != nil {
			q.URL.Scheme = "https"
		}
		q.Header.Del("Authorization")
		if f.u.cfg.Token != "" {
			q.Header.Set("Authorization", "Bearer "+f.u.cfg.Token)
		}
		res, err := f.next.RoundTrip(q)
		if err == nil {
			if i > 0 {
				f.u.prefer(n)
			}
			return res, nil
		}
		failure = err
		if body.begun.Load() || r.Context().Err() != nil {
			break
		}
	}
	return nil, failure
}

// readOnce is a body that knows whether anybody has begun to read it. The
// transport closes it after each try, which must not end the next one.
type readOnce struct {
	io.ReadCloser
	begun atomic.Bool
}

func (b *readOnce) Read(p []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(p)
}

func (b *readOnce) Close() error {
	if b.ReadCloser == nil || !b.begun.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}

// order lists the replicas, the preferred one first.
func (u *upstreams) order() []int {
	n, first := len(u.cfg.Upstreams), int(u.preferred.Load())
	list := make([]int, n)
	for i := range n {
		list[i] = (first + i) % n
	}
	return list
}

func (u *upstreams) prefer(n int) { u.preferred.Store(int64(n)) }

// failed makes the next replica the preferred one, if n was.
func (u *upstreams) failed(n int) {
	u.preferred.CompareAndSwap(int64(n), int64((n+1)%len(u.cfg.Upstreams)))
}

type client = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

// open returns a stream to the first replica that serves it, and which one that
// is. The stream ends with ctx.
func (u *upstreams) open(ctx context.Context) (client, int, error) {
	var errs []error
	for _, n := range u.order() {
		s, err := u.try(ctx, n)
		if err == nil {
			u.prefer(n)
			return s, n, nil
		}
		errs = append(errs, err)
	}
	return nil, 0, errors.Join(errs...)
}

// try opens a stream to one replica and waits until it says that it serves it: a
// replica that has no configuration itself must not be taken for one.
func (u *upstreams) try(ctx context.Context, n int) (client, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(openTimeout, cancel)
	if u.cfg.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+u.cfg.Token)
	}
	s, err := discovery.NewAggregatedDiscoveryServiceClient(u.conns[n]).DeltaAggregatedResources(ctx)
	if err == nil {
		var md metadata.MD
		if md, err = s.Header(); err == nil && len(md.Get(edgeapi.VersionHeader)) == 0 {
			if _, err = s.Recv(); err == nil {
				err = errors.New("the replica does not say that it serves the stream")
			}
		}
	}
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(s.Context(), cancel)
	return s, nil
}

// proxy passes requests on, with the token that replicas ask for.
func (u *upstreams) proxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Host = "replica" }, // the transport chooses
		Transport: u.http.Transport,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			u.cfg.Log.DebugContext(r.Context(), "no replica took a request of Envoy", "path", r.URL.Path, "cause", err)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
}

// envoyByToken returns the Envoy whose token a value of Authorization has; nil: none.
func (r *Relay) envoyByToken(authorization string) *envoy {
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.envoys {
		if subtle.ConstantTimeCompare([]byte(token), []byte(e.token)) == 1 {
			return e
		}
	}
	return nil
}
