package passthrough

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// serve returns a runtime in front of a gateway.
func serve(t *testing.T, c Config, gateway http.HandlerFunc) *httptest.Server {
	t.Helper()
	g := httptest.NewServer(gateway)
	t.Cleanup(g.Close)
	quiet := slog.New(slog.DiscardHandler)
	c.Gateway, c.Log, c.Adapter = g.URL, quiet, httpapi.Adapter{Log: quiet}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s
}

// reply is an answer whose body the test closes at its end.
type reply struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

func post(t *testing.T, url string, body io.Reader, length int64) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	if length != 0 {
		req.ContentLength = length
	}
	req.Header.Set("Authorization", "Bearer slk_1")
	req.Header.Set("X-Sluice-Identity", "v1;a=1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return reply{resp.StatusCode, resp.Header, resp.Body}
}

// The gateway learns from where the caller calls, not from where the runtime does.
func TestTheCallersAddressGoesAlong(t *testing.T) {
	t.Parallel()
	secret := []byte("a secret of the edges")
	c := Config{Verifier: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}}
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		addr, ok := identityheader.VerifyVoucher(secret, r.Header.Get(identityheader.VoucherHeader), "key_1", time.Now().Unix())
		if !ok || addr.String() != "192.0.2.7" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	for signer, want := range map[string]int{string(secret): 200, "a guess": 403} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/voice", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(identityheader.AddressHeader, "192.0.2.7")
		req.Header.Set(identityheader.Header, identityheader.Sign([]byte(signer), identityheader.Caller{Account: "acct_1", Key: "key_1"}, time.Now().Unix()))
		req.Header.Set(identityheader.VoucherHeader, identityheader.SignVoucher(secret, identityheader.Voucher{Address: "192.0.2.7", Key: "key_1"}, time.Now().Unix())) // the caller's own goes no further
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("an identity signed by %q: %d", signer, resp.StatusCode)
		}
	}
}

func TestRequestsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("\x00\xff\r\n", 100_000)
	for name, c := range map[string]struct {
		body   io.Reader
		length string
	}{
		"with a length": {strings.NewReader(body), strconv.Itoa(len(body))},
		"chunked":       {io.MultiReader(strings.NewReader(body)), "-1"},
	} {
		s := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			if string(got) != body || r.URL.RequestURI() != "/v1/transcode?profile=a%20b" || r.Header.Get("Authorization") != "Bearer slk_1" ||
				r.Header.Get("Content-Type") != "application/octet-stream" || r.Header.Get("X-Sluice-Identity") != "" {
				t.Errorf("%s: %s %v, %d bytes", name, r.URL, r.Header, len(got))
			}
			w.Header().Set("X-Length", strconv.FormatInt(r.ContentLength, 10))
			w.Header().Set("Content-Type", "video/mp4")
			w.WriteHeader(201)
			_, _ = w.Write(got)
		})
		resp := post(t, s.URL+"/v1/transcode?profile=a%20b", c.body, 0)
		back, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 201 || string(back) != body || resp.Header.Get("X-Length") != c.length || resp.Header.Get("Content-Type") != "video/mp4" {
			t.Errorf("%s: %d %v, %d bytes, %v", name, resp.StatusCode, resp.Header, len(back), err)
		}
	}
}

// TestBothWaysUnbuffered sends each piece only once the one before has come back.
func TestBothWaysUnbuffered(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(200)
		_ = c.Flush()
		buf := make([]byte, 10)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(bytes.ToUpper(buf[:n]))
			_ = c.Flush()
			if err != nil {
				return
			}
		}
	})
	out, in := io.Pipe()
	resp := post(t, s.URL+"/v1/voice", out, 0)
	buf := make([]byte, 3)
	for _, piece := range []string{"one", "two", "six"} {
		if _, err := io.WriteString(in, piece); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != strings.ToUpper(piece) {
			t.Fatalf("%q came back as %q, %v", piece, buf, err)
		}
	}
	in.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestBackPressure has a gateway that reads nothing: the client must come to a
// stop long before all is sent. A stop has no signal but that a write does not
// return; on a slow machine the test stops sooner, and passes too.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	s := serve(t, Config{}, func(http.ResponseWriter, *http.Request) { <-release })
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const size = 256 << 20
	if _, err := fmt.Fprintf(conn, "POST /v1/mux HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		t.Fatal(err)
	}
	piece, sent := make([]byte, 64<<10), 0
	for err == nil && sent < size {
		_ = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		var n int
		n, err = conn.Write(piece)
		sent += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were taken although nobody read them: %v", sent, err)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{MaxBody: 1000}, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	never, end := io.Pipe()
	defer end.Close()
	for name, resp := range map[string]reply{
		"declared": post(t, s.URL, never, 1001),
		"chunked":  post(t, s.URL, io.MultiReader(strings.NewReader(strings.Repeat("x", 5000))), 0),
	} {
		if code := errorCode(t, resp); resp.StatusCode != 413 || code != "STORAGE_001" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, code)
		}
	}
	if resp := post(t, s.URL, strings.NewReader(strings.Repeat("x", 1000)), 0); resp.StatusCode != 200 {
		t.Errorf("at the limit: %d", resp.StatusCode)
	}
}

func errorCode(t *testing.T, resp reply) string {
	t.Helper()
	var e struct{ Error struct{ Code string } }
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e.Error.Code
}

func TestGatewayGone(t *testing.T) {
	t.Parallel()
	g := httptest.NewServer(nil)
	g.Close()
	p, err := New(Config{Gateway: g.URL, Adapter: httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	defer s.Close()
	resp := post(t, s.URL, strings.NewReader("x"), 0)
	if code := errorCode(t, resp); resp.StatusCode != 502 || code != "bad_gateway" {
		t.Errorf("%d %s", resp.StatusCode, code)
	}
}

func TestBadGateways(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "host", "ftp://host", "://"} {
		if _, err := New(Config{Gateway: u}); err == nil {
			t.Errorf("%q is accepted", u)
		}
	}
}
