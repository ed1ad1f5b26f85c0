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
	"syscall"
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
		conn.SetReadLimit(1 << 20)
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
	s.change(t, "products/echo", map[string]any{"upstream": "http://" + address})
	s.change(t, "classes/sockets", map[string]any{"per_minute": 6000, "connections": 3, "connections_per_key": 2})
	upgrades := []string{"websocket"}
	for name, r := range map[string]map[string]any{
		"echo.socket": {"path": "/echo", "upgrades": upgrades, "class": "sockets", "scope": "streams:read"},
		"echo.open":   {"path": "/open", "upgrades": upgrades, "cors": map[string]any{"origins": []string{"https://app.example.com", "https://*.example.org"}}},
		"echo.idle":   {"path": "/idle", "upgrades": upgrades, "timeout": "3s"},
		"echo.brief":  {"path": "/brief", "upgrades": upgrades, "lifetime": "3s"},
		"echo.plain":  {"path": "/plain"},
	} {
		r["methods"], r["product"] = []string{"GET"}, "echo"
		s.change(t, "routes/"+name, r)
	}
	s.held(t)
}

// bearer is a header with a key.
func bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// dial opens a WebSocket; res is the answer in any case.
func (s *stack) dial(t testing.TB, path string, header http.Header, protocols ...string) (conn *websocket.Conn, res *http.Response, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !strings.Contains(path, "://") {
		path = s.url(path)
	}
	conn, res, err = websocket.Dial(ctx, "ws"+strings.TrimPrefix(path, "http"), &websocket.DialOptions{HTTPHeader: header, Subprotocols: protocols})
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

// answered is connected, and the answer with which the connection began.
func (s *stack) answered(t testing.TB, path string, header http.Header) (*websocket.Conn, *http.Response) {
	t.Helper()
	conn, res, err := s.dial(t, path, header)
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, conn, "hello")
	return conn, res
}

// wantExplained waits until the request log says how a connection ended.
func (s *stack) wantExplained(t testing.TB, res *http.Response, why string) recorded {
	t.Helper()
	got := s.recordedAs(t, response{Response: res})
	if got.Status != http.StatusSwitchingProtocols || !strings.Contains(got.Explanation, why) {
		t.Errorf("want %q, recorded as %+v", why, got)
	}
	return got
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
	s := lentStack(t)
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
	t.Run("idle", func(t *testing.T) {
		conn, res := s.answered(t, "/idle", bearer(key))
		wantEnd(t, conn)
		s.wantExplained(t, res, "nothing was sent for longer than the idle timeout")
	})
	t.Run("lifetime", func(t *testing.T) {
		conn, res := s.answered(t, "/brief", bearer(key))
		for {
			if _, err := echoed(conn, "still here"); err != nil {
				break
			}
		}
		if got := s.wantExplained(t, res, "its lifetime was over"); !got.EndedAt.After(got.Time) {
			t.Errorf("it lasted from %v to %v", got.Time, got.EndedAt)
		}
	})
	t.Run("over HTTP/2", func(t *testing.T) { s.overHTTP2(t, key) })
	t.Run("revoked", func(t *testing.T) {
		text, id := s.newKey(t, "streams:read")
		conn, res := s.answered(t, "/open", bearer(text))
		s.revoke(t, id)
		wantEnd(t, conn)
		s.wantRefused(t, "/open", bearer(text), 401, "invalid_api_key")
		got := s.wantExplained(t, res, "the edge ended it, invalid_api_key")
		if got.Route != "echo.open" || got.Key != id || got.Code != "invalid_api_key" || got.BytesIn == 0 || got.BytesOut == 0 {
			t.Errorf("recorded as %+v", got)
		}
	})
	t.Run("unpaid", func(t *testing.T) { s.closedUntilPaid(t) })
	s.countsSockets(t, key, id)
}

func (s *stack) revoke(t testing.TB, key string) {
	t.Helper()
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+key), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
}

// closedUntilPaid has the connection of an account end with its standing.
func (s *stack) closedUntilPaid(t *testing.T) {
	id, key := s.keyedAccount(t, "local")
	conn := s.connected(t, "/open", bearer(key))
	r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+id+"/invoices", s.dev["SLUICE_ADMIN_KEY"], map[string]any{
		"invoices": []any{map[string]any{"number": "2026-01", "status": "open", "currency": "EUR", "amount": 100, "period_start": "2026-01-01",
			"period_end": "2026-01-31", "issued_at": "2026-02-01T00:00:00Z", "due_at": "2026-02-15T00:00:00Z"}}})
	wantStatus(t, r, http.StatusOK)
	wantEnd(t, conn)
	s.wantRefused(t, "/open", bearer(key), 402, "BILLING_001")
}

// An edge whose Envoy is replaced, or that is to stop, lets connections go on for a while, and
// ends them when their keys end all the same.
func TestWebSocketsOfAnEdgeThatIsReplaced(t *testing.T) {
	t.Parallel()
	s := own(t, nil)
	s.sockets(t)
	key, _ := s.newKey(t, "streams:read")
	revoked, id := s.newKey(t, "streams:read")
	e := s.addEdge(t, "edge-sockets", s.env["SLUICE_XDS_ADDR"])
	eventually(t, "the edge has the routes", func() error {
		conn, _, err := s.dial(t, e.base+"/open", bearer(revoked))
		if err == nil {
			_ = conn.CloseNow()
		}
		return err
	})
	old, ended := s.connected(t, e.base+"/open", bearer(key)), s.connected(t, e.base+"/open", bearer(revoked))
	if err := e.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another Envoy serves", func() error {
		if !strings.Contains(e.Output(), `taken over" process=edge epoch=1`) {
			return errors.New(e.Tail())
		}
		return nil
	})
	fresh := s.connected(t, e.base+"/open", bearer(key))
	wantEcho(t, old, "of before")
	s.revoke(t, id)
	wantEnd(t, ended)
	wantEcho(t, old, "of before")
	if err := e.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edge says that it stops", func() error {
		r, err := try(http.MethodGet, "http://"+e.env["SLUICE_EDGE_METRICS_ADDR"]+"/health", "", nil)
		if err == nil && r.StatusCode != http.StatusServiceUnavailable {
			err = errors.New(r.Status)
		}
		return err
	})
	wantEcho(t, fresh, "while it drains")
	wantEnd(t, fresh)
	wantEnd(t, old)
}

// overHTTP2 opens a WebSocket by extended CONNECT (RFC 8441), and one that has no scope.
//
//nolint:staticcheck // net/http by itself makes no extended CONNECT
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
		if of.Requests == 0 || of.BytesIn == 0 || of.BytesOut == 0 || of.Seconds < 10 {
			return fmt.Errorf("%+v", of)
		}
		return nil
	})
	text := scrape(t, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics")
	if n := line(t, text, `sluice_edge_connection_seconds_total{product="echo",route="echo.open"}`); n < 10 {
		t.Errorf("connections were open for %v s", n)
	}
	if n := line(t, text, `sluice_edge_refused_total{product="echo",reason="connection_limit_reached",route="echo.socket"}`); n < 2 {
		t.Errorf("%v refusals", n)
	}
	if err := conn.Close(websocket.StatusNormalClosure, "enough"); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
