package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/quic-go/quic-go/http3"
)

// makeCerts runs `sluice certs`.
func makeCerts(t testing.TB, dir string, args ...string) {
	t.Helper()
	if status, out, errs := sluice(t, nil, append([]string{"certs", dir}, args...)...); status != 0 {
		t.Fatal(status, out, errs)
	}
}

// trusting is a TLS configuration that trusts the CA in dir.
func trusting(t testing.TB, dir string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no CA")
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

// secureStack is a stack whose edges speak TLS and HTTP/3 to clients, and TLS in
// both directions to the control plane.
func secureStack(t testing.TB) (s *stack, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "certs")
	makeCerts(t, dir, "--edge", "edge-1")
	return own(t, map[string]string{
		"SLUICE_TLS_CERT": filepath.Join(dir, "gateway.pem"), "SLUICE_TLS_KEY": filepath.Join(dir, "gateway.key"),
		"SLUICE_HTTP3": "1", "SLUICE_XDS_TLS_DIR": dir,
	}), dir
}

// over asks the gateway for its streams over a transport.
func (s *stack) over(rt http.RoundTripper) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/v1/streams"), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
	res, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	return res, nil
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s, dir := secureStack(t)
	for _, name := range []string{"SLUICE_GATEWAY_URL", "SLUICE_RUNTIME_URL"} {
		if !strings.HasPrefix(s.dev[name], "https://") {
			t.Errorf("%s is %s", name, s.dev[name])
		}
	}
	t.Run("versions and protocols", func(t *testing.T) { versionsAndProtocols(t, s, dir) })
	t.Run("HTTP/3", func(t *testing.T) { overHTTP3(t, s, dir) })
	t.Run("plain text", func(t *testing.T) {
		if r, err := rawly(s.front(), "GET /health HTTP/1.1\r\nHost: a\r\n\r\n", patience); err == nil {
			t.Errorf("is answered %d", r.StatusCode)
		}
	})
	t.Run("services call the gateway", func(t *testing.T) { servicesOverTLS(t, s, dir) })
	t.Run("rotation under load", func(t *testing.T) { rotationUnderLoad(t, s, dir) })
	t.Run("rotation of what edges show", func(t *testing.T) { rotationOfEdges(t, s, dir) })
	t.Run("strangers", func(t *testing.T) { strangers(t, s, dir) })
	t.Run("strange edges", func(t *testing.T) { strangeEdges(t, s, dir) })
}

func versionsAndProtocols(t *testing.T, s *stack, dir string) {
	for name, c := range map[string]struct {
		change func(*tls.Config)
		alpn   string // negotiated; "refused": no connection
	}{
		"HTTP/2 first":  {func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }, "h2"},
		"HTTP/1.1 only": {func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, "http/1.1"},
		"no protocol":   {func(*tls.Config) {}, ""},
		"TLS 1.2":       {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, ""},
		"TLS 1.1":       {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 }, "refused"},
		"CBC": {func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		}, "refused"},
	} {
		config := trusting(t, dir)
		c.change(config)
		conn, err := tls.Dial("tcp", s.front(), config)
		if refused := c.alpn == "refused"; refused != (err != nil) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && conn.ConnectionState().NegotiatedProtocol != c.alpn {
			t.Errorf("%s: %q", name, conn.ConnectionState().NegotiatedProtocol)
		}
		if conn != nil {
			conn.Close()
		}
	}
	for _, h2 := range []bool{true, false} {
		rt := &http.Transport{TLSClientConfig: trusting(t, dir), ForceAttemptHTTP2: h2}
		res, err := s.over(rt)
		if err != nil || (res.ProtoMajor == 2) != h2 {
			t.Fatalf("HTTP/2 %v: %v, %v", h2, res, err)
		}
		_, port, _ := strings.Cut(s.front(), ":")
		if got, want := res.Header.Get("Alt-Svc"), `h3=":`+port+`"; ma=86400`; got != want {
			t.Errorf("Alt-Svc is %q, want %q", got, want)
		}
		rt.CloseIdleConnections()
	}
}

func overHTTP3(t *testing.T, s *stack, dir string) {
	rt := &http3.Transport{TLSClientConfig: trusting(t, dir)}
	defer rt.Close()
	res, err := s.over(rt)
	if err != nil {
		t.Fatal(err)
	}
	if res.ProtoMajor != 3 || res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Ratelimit-Limit") == "" {
		t.Errorf("%s %v", res.Proto, res.Header)
	}
}

// Services of ours that call the gateway in somebody's name speak TLS with it, and
// the addresses that they give out are those of TLS.
func servicesOverTLS(t *testing.T, s *stack, dir string) {
	rt := &http.Transport{TLSClientConfig: trusting(t, dir)}
	defer rt.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.dev["SLUICE_RUNTIME_URL"]+"/v1/transcribe", strings.NewReader("sound"))
	if err != nil {
		t.Fatal(err)
	}
	r := send(t, &http.Client{Transport: rt}, req, s.dev["SLUICE_API_KEY"])
	wantStatus(t, r, http.StatusBadRequest) // by the product behind the gateway: it is no sound
	if e := into[envelope](t, r).Error; e.Code != "STORAGE_002" || !strings.HasPrefix(e.Docs, s.dev["SLUICE_GATEWAY_URL"]) {
		t.Errorf("%s", r.body)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.url("/mcp"), HTTPClient: &http.Client{Transport: bearing{rt, s.dev["SLUICE_API_KEY"], nil}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if made := must(t, session, "createStream", map[string]any{"title": "Over TLS", "protocol": "rtmp"}); made["title"] != "Over TLS" {
		t.Errorf("%v", made)
	}
	for path, want := range map[string]string{"/.well-known/mcp.json": s.dev["SLUICE_GATEWAY_URL"], "/.well-known/platform-products.json": s.dev["SLUICE_RUNTIME_URL"]} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := send(t, &http.Client{Transport: rt}, req, s.dev["SLUICE_API_KEY"]); r.StatusCode != 200 || !strings.Contains(r.body, want) || strings.Contains(r.body, "http://"+s.front()) {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

// serial is the number of the certificate that a new handshake meets.
func (s *stack) serial(config *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", s.front(), config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// Certificates are replaced while requests run: none fails, connections that are
// open go on, and new ones meet the new certificate.
func rotationUnderLoad(t *testing.T, s *stack, dir string) {
	config := trusting(t, dir)
	kept := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true} // one connection of HTTP/2
	defer kept.CloseIdleConnections()
	if _, err := s.over(kept); err != nil {
		t.Fatal(err)
	}
	var handshakes atomic.Int64
	kept.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error { handshakes.Add(1); return nil }
	fresh := &http.Transport{TLSClientConfig: trusting(t, dir), DisableKeepAlives: true} // a handshake for each request
	stop, done := make(chan struct{}), make(chan []string)
	for _, rt := range []http.RoundTripper{kept, fresh} {
		go func() {
			_, failures := load(stop, 1, func() error { _, err := s.over(rt); return err })
			done <- failures
		}()
	}
	for range 3 {
		before, err := s.serial(trusting(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		makeCerts(t, dir)
		eventually(t, "new handshakes meet the new certificate", func() error {
			now, err := s.serial(trusting(t, dir))
			if err == nil && now == before {
				err = errors.New("the old one")
			}
			return err
		})
	}
	close(stop)
	for range 2 {
		if failures := <-done; len(failures) > 0 {
			t.Errorf("%d requests failed, first: %s", len(failures), failures[0])
		}
	}
	if n := handshakes.Load(); n != 0 {
		t.Errorf("the connection that was kept was made anew %d times", n)
	}
}

// What edges and the control plane show each other is replaced; both connect anew
// with it when the control plane comes back from a crash.
func rotationOfEdges(t *testing.T, s *stack, dir string) {
	makeCerts(t, dir, "--edge", "edge-1")
	if err := syscall.Kill(s.child(t, "controlplane"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the control plane is back", func() error {
		r, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/health", "", nil)
		return unless(err, r, http.StatusOK)
	})
	key, _ := s.newKeyOver(t, &http.Transport{TLSClientConfig: trusting(t, dir)})
	if key == "" {
		t.Fatal("no key")
	}
}

// newKeyOver makes a key and waits until the edge knows it: the feed works.
func (s *stack) newKeyOver(t testing.TB, rt http.RoundTripper) (text, id string) {
	t.Helper()
	c := &http.Client{Transport: rt, Timeout: 30 * time.Second}
	req, err := http.NewRequest(http.MethodPost, s.url("/v1/auth/keys"), strings.NewReader(`{"name":"tls","scopes":["streams:read"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_SESSION_TOKEN"])
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	k := into[struct{ ID, Key string }](t, response{Response: res, body: string(b)})
	eventually(t, "the edge knows the key", func() error {
		req, err := http.NewRequest(http.MethodGet, s.url("/v1/streams"), nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+k.Key)
		res, err := c.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return unless(err, response{Response: res}, http.StatusOK)
	})
	return k.Key, k.ID
}

// Nobody without an edge's certificate learns anything from the control plane,
// and an edge cannot be another.
func strangers(t *testing.T, s *stack, dir string) {
	base := "https://" + s.env["SLUICE_XDS_ADDR"]
	other := filepath.Join(t.TempDir(), "other")
	makeCerts(t, other, "--edge", "edge-1")
	makeCerts(t, dir, "--edge", "edge-9")
	for name, c := range map[string]struct {
		folder, edge string // whose certificate is shown
		header       string
		status       int // 0: no connection
	}{
		"no certificate":         {"", "", "edge-1", 0},
		"one of another CA":      {other, "edge-1", "edge-1", 0},
		"a server's":             {dir, "gateway", "edge-1", 0},
		"another edge's":         {dir, "edge-9", "edge-1", 401},
		"its own, and no token":  {dir, "edge-9", "edge-9", 401},
		"its own, and the token": {dir, "edge-9", "edge-9 token", 200},
	} {
		config := trusting(t, dir)
		config.ServerName = "controlplane"
		if c.folder != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, c.edge+".pem"), filepath.Join(c.folder, c.edge+".key"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		req, err := http.NewRequest(http.MethodGet, base+"/feed/v1/records?wait=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		edge, token := strings.CutSuffix(c.header, " token")
		req.Header.Set("x-sluice-edge", edge)
		if token {
			req.Header.Set("Authorization", "Bearer "+readEnv(t, filepath.Join(s.dir, "secrets.env"))["SLUICE_FEED_TOKEN"])
		}
		res, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(req)
		if err == nil {
			res.Body.Close()
		}
		if (c.status == 0) != (err != nil) || (err == nil && res.StatusCode != c.status) {
			t.Errorf("%s: %v, %v, want %d", name, res, err, c.status)
		}
	}
}

// An edge that has no certificate, or another edge's, is given nothing: it stays
// closed.
func strangeEdges(t *testing.T, s *stack, dir string) {
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.CopyFS(wrong, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{".pem", ".key"} { // edge-1's, under another name
		if err := os.Rename(filepath.Join(wrong, "edge-1"+end), filepath.Join(wrong, "edge-2"+end)); err != nil {
			t.Fatal(err)
		}
	}
	var turned sync.WaitGroup
	for what, folder := range map[string]string{"no certificate": "", "another edge's": wrong} {
		env := settings(t, tempDir(t))
		env["SLUICE_EDGE_NAME"] = "edge-2"
		env["SLUICE_XDS_ADDR"] = s.env["SLUICE_XDS_ADDR"]
		env["SLUICE_XDS_TLS_DIR"] = folder
		edge := run(t, env, "edge")
		t.Cleanup(func() {
			if err := edge.Stop(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		turned.Go(func() {
			if err := turnedAway(env["SLUICE_ENVOY_ADMIN_ADDR"]); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			r, err := try(http.MethodGet, "http://"+env["SLUICE_GATEWAY_ADDR"]+"/v1/streams", s.dev["SLUICE_API_KEY"], nil)
			if err != nil || r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(r.body, "edge_not_ready") {
				t.Errorf("%s: %v, %s", what, err, r.body)
			}
		})
	}
	turned.Wait()
}

// turnedAway waits until an Envoy has asked the control plane in vain again.
func turnedAway(admin string) error {
	tick := time.NewTicker(20 * time.Millisecond) // Envoy gives no signal of its own
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		r, err := try(http.MethodGet, "http://"+admin+"/stats?filter=cluster_manager.cds.update_(attempt|success)", "", nil)
		var attempts, successes int
		if n, _ := fmt.Sscanf(r.body, "cluster_manager.cds.update_attempt: %d\ncluster_manager.cds.update_success: %d", &attempts, &successes); err != nil || n != 2 {
			continue
		}
		if successes > 0 {
			return errors.New("it was given a configuration")
		}
		if attempts > 1 { // each further one is a stream that ended
			return nil
		}
	}
	return errors.New("it has not asked twice")
}
