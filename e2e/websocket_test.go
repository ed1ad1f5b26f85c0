package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/net/http2"
)

// echoProduct answers each message of a WebSocket with the same, and any other request with
// what it saw of it.
func echoProduct(t testing.TB) (address string) {
	t.Helper()
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("Sec-Websocket-Protocol"))
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{"chat"}})
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			kind, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if string(message) == "what do you see" {
				message = []byte(r.Header.Get("Sec-Websocket-Protocol") + "|" + r.Header.Get("Authorization"))
			}
			if conn.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	}))
	t.Cleanup(product.Close)
	return product.Listener.Addr().String()
}

// sockets configures routes to a product that echoes.
func (s *stack) sockets(t testing.TB) {
	t.Helper()
	address := echoProduct(t)
	s.put(t, "products/echo", map[string]any{"upstream": "http://" + address})
	s.put(t, "classes/sockets", map[string]any{"per_minute": 6000, "connections": 3, "connections_per_key": 2})
	upgrades := []string{"websocket"}
	for name, r := range map[string]map[string]any{
		"echo.socket": {"path": "/echo", "upgrades": upgrades, "class": "sockets", "scope": "streams:read"},
		"echo.open":   {"path": "/open", "upgrades": upgrades, "cors": map[string]any{"origins": []string{"https://app.example.com", "https://*.example.org"}}},
		"echo.idle":   {"path": "/idle", "upgrades": upgrades, "timeout": "1s"},
		"echo.brief":  {"path": "/brief", "upgrades": upgrades, "lifetime": "1s"},
		"echo.plain":  {"path": "/plain"},
	} {
		r["methods"], r["product"] = []string{"GET"}, "echo"
		s.put(t, "routes/"+name, r)
	}
	for _, path := range []string{"/echo", "/open", "/idle", "/brief", "/plain"} {
		s.becomes(t, path, http.StatusUnauthorized)
	}
}

// bearer is a header with a key.
func bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// dial opens a WebSocket; res is the answer in any case.
func (s *stack) dial(t testing.TB, path string, header http.Header, protocols ...string) (conn *websocket.Conn, res *http.Response, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, res, err = websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url(path), "http"), &websocket.DialOptions{HTTPHeader: header, Subprotocols: protocols})
	if conn != nil {
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, res, err
}

// connected opens a WebSocket that must be let through.
func (s *stack) connected(t testing.TB, path string, header http.Header, protocols ...string) *websocket.Conn {
	t.Helper()
	conn, res, err := s.dial(t, path, header, protocols...)
	if err != nil {
		t.Fatalf("%s: %v %v", path, err, res)
	}
	wantEcho(t, conn, "hello")
	return conn
}

func wantEcho(t testing.TB, conn *websocket.Conn, text string) {
	t.Helper()
	if got, err := echoed(conn, text); err != nil || got != text {
		t.Fatalf("echo: %q %v", got, err)
	}
}

func echoed(conn *websocket.Conn, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return "", err
	}
	_, message, err := conn.Read(ctx)
	return string(message), err
}

// wantEnd waits until the other side ends the connection.
func wantEnd(t testing.TB, conn *websocket.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, message, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("it goes on: %q %v", message, err)
	}
}

// wantRefused dials and reads the error.
func (s *stack) wantRefused(t testing.TB, path string, header http.Header, status int, code string) *http.Response {
	t.Helper()
	_, res, err := s.dial(t, path, header)
	if err == nil {
		t.Fatalf("%s is let through", path)
	}
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != status || !strings.Contains(string(body), `"`+code+`"`) {
		t.Fatalf("%s: %d %s, want %d %s", path, res.StatusCode, body, status, code)
	}
	return res
}

// A WebSocket through the gateway is judged as any request is, and ends when what let it in
// does.
func TestWebSockets(t *testing.T) {
	t.Parallel()
	s := own(t, map[string]string{"SLUICE_EDGE_CONCURRENCY": "2"})
	s.sockets(t)
	key, id := s.newKey(t, "streams:read")
	t.Run("who may", func(t *testing.T) {
		s.wantRefused(t, "/echo", nil, 401, "authentication_required")
		s.wantRefused(t, "/echo", bearer("no key"), 401, "invalid_api_key")
		other, _ := s.newKey(t, "streams:write")
		s.wantRefused(t, "/echo", bearer(other), 403, "AUTH_002")
		s.wantRefused(t, "/plain", bearer(key), 403, "upgrade_refused")
	})
	t.Run("credentials of browsers", func(t *testing.T) {
		conn := s.connected(t, "/open", nil, "chat", "sluice.bearer."+key)
		if got, err := echoed(conn, "what do you see"); got != "chat|" || err != nil || conn.Subprotocol() != "chat" {
			t.Errorf("the product sees %q %v, the client %q", got, err, conn.Subprotocol())
		}
	})
	t.Run("origins", func(t *testing.T) {
		for origin, may := range map[string]bool{"https://app.example.com": true, "https://a.example.org": true, "https://example.com": false, "https://evil.test": false} {
			header := bearer(key)
			header.Set("Origin", origin)
			if may {
				s.connected(t, "/open", header)
			} else {
				s.wantRefused(t, "/open", header, 403, "upgrade_refused")
			}
		}
	})
	t.Run("limits of a key and an account", func(t *testing.T) {
		other, _ := s.newKey(t, "streams:read")
		first := s.connected(t, "/echo", bearer(key))
		s.connected(t, "/echo", bearer(key))
		if res := s.wantRefused(t, "/echo", bearer(key), 429, "connection_limit_reached"); res.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		third := s.connected(t, "/echo", bearer(other))
		s.wantRefused(t, "/echo", bearer(other), 429, "connection_limit_reached")
		_ = first.CloseNow()
		eventually(t, "a place is free again", func() error {
			conn, _, err := s.dial(t, "/echo", bearer(other))
			if err == nil {
				_ = conn.CloseNow()
			}
			return err
		})
		_ = third.CloseNow()
	})
	t.Run("idle", func(t *testing.T) { wantEnd(t, s.connected(t, "/idle", bearer(key))) })
	t.Run("lifetime", func(t *testing.T) {
		conn := s.connected(t, "/brief", bearer(key))
		for {
			if _, err := echoed(conn, "still here"); err != nil {
				break
			}
		}
	})
	t.Run("over HTTP/2", func(t *testing.T) { s.overHTTP2(t, key) })
	t.Run("revoked", func(t *testing.T) {
		text, id := s.newKey(t, "streams:read")
		conn := s.connected(t, "/open", bearer(text))
		wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
		wantEnd(t, conn)
		s.wantRefused(t, "/open", bearer(text), 401, "invalid_api_key")
	})
	s.countsSockets(t, key, id)
}

// overHTTP2 opens a WebSocket by extended CONNECT (RFC 8441), and one that has no scope.
func (s *stack) overHTTP2(t *testing.T, key string) {
	client := &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	defer client.CloseIdleConnections()
	connect := func(path string) (*http.Response, *io.PipeWriter) {
		r, w := io.Pipe()
		req, err := http.NewRequest(http.MethodConnect, s.url(path), r)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(":protocol", "websocket")
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Sec-WebSocket-Version", "13")
		res, err := client.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return res, w
	}
	res, w := connect("/open")
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("extended CONNECT: %d", res.StatusCode)
	}
	// A masked frame of text, with a mask of zeros, and its echo without one.
	if _, err := w.Write([]byte("\x81\x85\x00\x00\x00\x00hello")); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 7)
	if _, err := io.ReadFull(res.Body, frame); err != nil || string(frame) != "\x81\x05hello" {
		t.Fatalf("%q %v", frame, err)
	}
	_ = w.Close()
	refused, w := connect("/plain")
	defer w.Close()
	defer refused.Body.Close()
	if refused.StatusCode != http.StatusForbidden {
		t.Errorf("on a plain route: %d", refused.StatusCode)
	}
}

// countsSockets checks what was counted of a connection, while it is open too.
func (s *stack) countsSockets(t *testing.T, key, id string) {
	t.Helper()
	conn := s.connected(t, "/open", bearer(key))
	eventually(t, "an open connection is counted", func() error {
		s.settledUsage(t)
		of := s.ofKey(t, id)["echo.open 1xx"]
		if of.Requests == 0 || of.BytesIn == 0 || of.BytesOut == 0 {
			return fmt.Errorf("%+v", of)
		}
		return nil
	})
	if err := conn.Close(websocket.StatusNormalClosure, "enough"); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
