package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/process/pause"
)

// Bounds of what anybody on the internet can make the agent do by asking for the
// protocol acme-tls/1.
const (
	maxHandshakes = 32              // at once; others wait
	handshakeTime = 5 * time.Second // of one, the question to the control plane included
	maxAnswer     = 1000            // bytes
	maxPatient    = 32              // questions at once that are repeated while no replica answers
	retryReplica  = 200 * time.Millisecond
)

// isChallenge reports whether a request of Envoy asks for the answer to http-01, which
// anybody may have.
func isChallenge(q *http.Request) bool {
	token, ok := strings.CutPrefix(q.URL.EscapedPath(), edgeapi.HTTPChallengePath)
	return ok && q.Method == http.MethodGet && token != "" && q.URL.Path == q.URL.EscapedPath() && !strings.ContainsAny(token, "/.")
}

// ChallengeAddr is where Envoy passes connections for tls-alpn-01 (RFC 8737).
func (r *Relay) ChallengeAddr() string { return r.challenges.Addr().String() }

// serveChallenges completes handshakes with authorities until ctx ends. After one
// there is nothing to say.
func (r *Relay) serveChallenges(ctx context.Context) error {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{acmez.ACMETLS1Protocol},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return r.challengeCertificate(ctx, hello) },
	}
	context.AfterFunc(ctx, func() { _ = r.challenges.Close() })
	seats := make(chan struct{}, maxHandshakes)
	for {
		seats <- struct{}{}
		conn, err := r.challenges.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accept handshakes of authorities: %w", err)
		}
		go func() {
			defer func() { <-seats; _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(handshakeTime))
			if err := tls.Server(conn, config).HandshakeContext(ctx); err != nil {
				r.cfg.Log.DebugContext(ctx, "a handshake for a challenge failed", "cause", err)
			}
		}()
	}
}

// challengeCertificate makes the certificate by which an authority knows us, of what a
// replica knows of the host.
func (r *Relay) challengeCertificate(ctx context.Context, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	if !slices.Contains(hello.SupportedProtos, acmez.ACMETLS1Protocol) || host == "" || len(host) > 253 {
		return nil, errors.New("it is no challenge")
	}
	status, answer, err := r.askChallenge(ctx, edgeapi.TLSChallengePath+url.PathEscape(host))
	if err != nil || status != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("no replica knows a challenge of %q", host), err)
	}
	return acmez.TLSALPN01ChallengeCert(acme.Challenge{
		Type: acme.ChallengeTypeTLSALPN01, Identifier: acme.Identifier{Type: "dns", Value: host}, KeyAuthorization: string(answer),
	})
}

// askChallenge asks a replica for an answer, again for a while when none can be reached:
// an authority that gets no answer does not ask twice, and a certificate would come
// minutes later. Nothing of what the authority sent goes with it but what it looks for.
func (r *Relay) askChallenge(ctx context.Context, path string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	status, answer, err = r.askReplica(ctx, path)
	if err == nil && status != http.StatusServiceUnavailable {
		return status, answer, nil
	}
	select {
	case r.patient <- struct{}{}:
		defer func() { <-r.patient }()
	default: // so many wait already that this is a flood
		return status, answer, err
	}
	for (err != nil || status == http.StatusServiceUnavailable) && pause.For(ctx, retryReplica) {
		status, answer, err = r.askReplica(ctx, path)
	}
	return status, answer, err
}

// askReplica is askChallenge once.
func (r *Relay) askReplica(ctx context.Context, path string) (status int, answer []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://replica"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set(edgeapi.EdgeHeader, r.cfg.Edge)
	res, err := r.upstreams.http.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, answer, err
}

// answerChallenge answers Envoy's question for http-01.
func (r *Relay) answerChallenge(w http.ResponseWriter, q *http.Request) {
	status, answer, err := r.askChallenge(q.Context(), q.URL.EscapedPath())
	if err != nil {
		w.Header().Set("Retry-After", "1")
		status, answer = http.StatusServiceUnavailable, nil
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}
