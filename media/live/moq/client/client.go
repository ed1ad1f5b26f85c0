// Package client connects to a server of MoQ, for tests and measurements.
package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
)

// Client is a session and what is behind it.
type Client struct {
	*session.Session
	// Ended is closed when the session has ended.
	Ended <-chan struct{}
}

// maxAnswer bounds what is shown of a refusal, in bytes.
const maxAnswer = 4 << 10

// Dial opens a session at an address of the form https://host:port/moq/… by
// WebTransport, or moqt://host:port/moq/… on QUIC itself. The server must show a
// certificate with one of the hashes, in hexadecimal digits. The session ends with
// ctx. An answer in place of a session is in the error.
func Dial(ctx context.Context, address string, hashes []string, h session.Handler) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, u, hashes)
	if err != nil {
		return nil, err
	}
	path := ""
	if u.Scheme == "moqt" {
		path = u.RequestURI()
	}
	s, err := session.Connect(ctx, conn, path, h)
	if err != nil {
		if conn.Context().Err() != nil {
			err = context.Cause(conn.Context()) // which says why the server has closed it
		}
		conn.Close(wire.CloseNoError, "")
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx) // it ends by somebody's will
	}()
	return &Client{s, ended}, nil
}

// dial opens the connection below the session.
func dial(ctx context.Context, u *url.URL, hashes []string) (session.Conn, error) {
	config := &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 5 * time.Second}
	if u.Scheme == "moqt" {
		c, err := quic.DialAddr(ctx, u.Host, pinned(hashes, wire.ALPN), config)
		if err != nil {
			return nil, err
		}
		return session.OverQUIC(c), nil
	}
	t := webtransport.Transport{TLSClientConfig: pinned(hashes, http3.NextProtoH3), QUICConfig: config, ApplicationProtocols: []string{wire.ALPN}}
	res, s, err := t.Dial(ctx, u.String(), nil)
	if err == nil {
		return session.OverWebTransport(s), nil
	}
	if res == nil || res.StatusCode < 300 {
		return nil, err
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // what there is of it
	return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
}

// errCertificate says that a server shows another certificate than expected.
var errCertificate = errors.New("the server shows a certificate with another hash")

// pinned trusts certificates by their hash alone, as serverCertificateHashes of
// WebTransport does.
func pinned(hashes []string, protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if !slices.Contains(hashes, hex.EncodeToString(sum[:])) {
				return errCertificate
			}
			return nil
		},
	}
}

// Viewer is the handler of a session that only watches.
type Viewer struct{}

// Subscribed implements session.Handler.
func (Viewer) Subscribed(s *session.Subscription) {
	_ = s.Reject(wire.RequestNoTrack, "nothing is published here") // who has gone needs no answer
}

// Announced implements session.Handler.
func (Viewer) Announced(wire.Namespace) error { return nil }

// Namespaces implements session.Handler.
func (Viewer) Namespaces(wire.Namespace) []wire.Namespace { return nil }
