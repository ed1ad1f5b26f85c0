// Package standby answers 503 at an edge's addresses while its Envoy cannot.
//
// Envoy opens its listeners only when the control plane has told it which, and
// none are open while it is being restarted. The standby listener shares the
// addresses with it (SO_REUSEPORT) and answers every request 503 with Retry-After
// and the error envelope, so that a client meets neither a refused connection nor
// a pass. It closes as soon as Envoy listens.
package standby

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// retryAfter is how many seconds a client is asked to wait: an Envoy is back
// within less.
const retryAfter = 2

// unknown is the rate limit that an answer shows which was given before any
// account was known: that of requests without credentials.
var unknown = ratelimit.Result{Policy: "address", Limit: 60, Remaining: 60}

// Listener holds open listeners until Close.
type Listener struct {
	server  *http.Server
	serving sync.WaitGroup // one for each listener
}

// Open listens on addrs (host:port) and answers. docsBase is the public address
// of the gateway for documentation_url; now tells the time for
// X-RateLimit-Reset; answered is called for each request; secure is the TLS that
// clients meet, nil for none. If one address cannot be had, none is kept.
func Open(addrs []string, docsBase string, now func() time.Time, answered func(), secure *tls.Config) (*Listener, error) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(secure == nil)
	d := &Listener{server: &http.Server{
		Handler:           handler(docsBase, now, answered),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		Protocols:         &protocols,
		TLSConfig:         secure,
	}}
	var listeners []net.Listener
	for _, addr := range addrs {
		l, err := listen(addr)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		// Whatever ends it, Serve has closed the listener then.
		d.serving.Go(func() {
			if secure != nil {
				_ = d.server.ServeTLS(l, "", "")
			} else {
				_ = d.server.Serve(l)
			}
		})
	}
	return d, nil
}

// Close stops listening at once, finishes the requests that have been read, and
// closes what is left when ctx ends. Closing twice is harmless.
func (d *Listener) Close(ctx context.Context) error {
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, d.server.Close())
	}
	d.serving.Wait()
	return err
}

// listen shares addr with Envoy, which listens with SO_REUSEPORT by default.
func listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var sockErr error
		err := conn.Control(func(fd uintptr) {
			sockErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, sockErr)
	}}
	return lc.Listen(context.Background(), "tcp", addr)
}

func handler(docsBase string, now func() time.Time, answered func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answered()
		id := requestID()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Connection", "close") // the next request must have a chance to meet Envoy
		h.Set("Retry-After", strconv.Itoa(retryAfter))
		h.Set("X-Request-ID", id)
		rate := unknown
		rate.Reset = now().Unix()
		for _, header := range rate.Headers(rate.Reset) {
			h.Set(header[0], header[1])
		}
		h.Set(ratelimit.WindowHeader, ratelimit.WindowValue)
		d := decision.Decision{Code: decision.EdgeNotReady, RetryAfter: retryAfter}
		w.WriteHeader(decision.Lookup(d.Code).Status)
		_, _ = w.Write(decision.AppendEnvelope(nil, d, id, docsBase))
	})
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
