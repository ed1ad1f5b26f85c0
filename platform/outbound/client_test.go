package outbound

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var loopbackOnly = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func wantReason(t *testing.T, err error, want Reason) {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) || f.Reason != want {
		t.Fatalf("error %v, want reason %s", err, want)
	}
	if f.Error() == "" || strings.Contains(f.Error(), "127.0.0.1") {
		t.Errorf("the text for customers is %q", f.Error())
	}
}

func TestACallCarriesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Got", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Custom")+" "+r.UserAgent())
		w.WriteHeader(201)
		_, _ = w.Write(body)
	})
	c := New(Config{Allow: loopbackOnly})
	header := http.Header{"x-custom": {"v"}}
	got, err := c.Do(t.Context(), Request{URL: s.URL + "/a?b=c", Header: header, Body: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != 201 || !got.OK() || string(got.Body) != "hello" || got.Truncated || got.Duration <= 0 {
		t.Errorf("%+v", got)
	}
	if want := "POST /a?b=c v Sluice/1"; got.Header.Get("X-Got") != want {
		t.Errorf("the server got %q, want %q", got.Header.Get("X-Got"), want)
	}
	if len(header) != 1 {
		t.Errorf("the caller's headers were changed: %v", header)
	}
}

func TestPrivateAddressesAreRefusedAtTheDial(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the call went through") }))
	t.Cleanup(s.Close)
	_, err := New(Config{}).Do(t.Context(), Request{URL: s.URL})
	wantReason(t, err, ReasonAddress)
	_, err = New(Config{}).Do(t.Context(), Request{URL: "http://127.0.0.1/"})
	wantReason(t, err, ReasonAddress)
}

// TestDNSThatChangesBetweenCheckAndDial is DNS rebinding: the check sees a
// public address, the connection would go to ours.
func TestDNSThatChangesBetweenCheckAndDial(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the call went through") })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	dns := &fakeDNS{answers: []netip.Addr{somewhere, loopback}}
	c := New(Config{Resolver: dns.resolver(t)})
	if err := c.CheckURL(t.Context(), "https://rebind.example.com/"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), Request{URL: "https://rebind.example.com/"})
	wantReason(t, err, ReasonAddress)
	_, err = c.Do(t.Context(), Request{URL: "http://rebind.example.com:" + port + "/"})
	wantReason(t, err, ReasonAddress)
}

// TestPlainHTTPDoesNotLeaveTheAllowList holds the other half: a name that
// passed the check with an allowed address must not take a plain-text call to
// the Internet.
func TestPlainHTTPDoesNotLeaveTheAllowList(t *testing.T) {
	t.Parallel()
	dns := &fakeDNS{answers: []netip.Addr{loopback, somewhere}}
	c := New(Config{Resolver: dns.resolver(t), Allow: loopbackOnly})
	if err := c.CheckURL(t.Context(), "http://rebind.example.com/"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), Request{URL: "http://rebind.example.com/"})
	wantReason(t, err, ReasonAddress)
}

func TestNamesGoThroughTheResolver(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	u, _ := url.Parse(s.URL)
	c := New(Config{Resolver: (&fakeDNS{answers: []netip.Addr{loopback}}).resolver(t), Allow: loopbackOnly})
	got, err := c.Do(t.Context(), Request{Method: http.MethodGet, URL: "http://hooks.example.com:" + u.Port()})
	if err != nil || string(got.Body) != "hooks.example.com:"+u.Port() {
		t.Errorf("%s %v", got.Body, err)
	}
}

func TestRedirectsAreAnswersNotFollowed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Error("the redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	got, err := New(Config{Allow: loopbackOnly}).Do(t.Context(), Request{URL: s.URL, Body: []byte("x")})
	if err != nil || got.Status != 307 || got.OK() {
		t.Errorf("%+v %v", got, err)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fits" {
			_, _ = io.WriteString(w, "0123456789")
			return
		}
		for range 1000 {
			_, _ = w.Write(make([]byte, 1000))
		}
	})
	c := New(Config{Allow: loopbackOnly, MaxBody: 10})
	got, err := c.Do(t.Context(), Request{URL: s.URL + "/fits"})
	if err != nil || len(got.Body) != 10 || got.Truncated {
		t.Errorf("a body of the limit: %d bytes, truncated %v, %v", len(got.Body), got.Truncated, err)
	}
	got, err = c.Do(t.Context(), Request{URL: s.URL})
	if err != nil || len(got.Body) != 10 || !got.Truncated {
		t.Errorf("a body over the limit: %d bytes, truncated %v, %v", len(got.Body), got.Truncated, err)
	}
}

func TestHugeResponseHeadersFail(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Big", strings.Repeat("x", 1<<20)) })
	_, err := New(Config{Allow: loopbackOnly}).Do(t.Context(), Request{URL: s.URL})
	wantReason(t, err, ReasonConnection)
}

func TestSilenceTimesOut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		<-release
	})
	t.Cleanup(func() { close(release) })
	c := New(Config{Allow: loopbackOnly, Timeout: 50 * time.Millisecond})
	_, err := c.Do(t.Context(), Request{URL: s.URL})
	wantReason(t, err, ReasonTimeout)
	got, err := c.Do(t.Context(), Request{URL: s.URL + "/half"})
	wantReason(t, err, ReasonTimeout)
	if got.Status != 200 {
		t.Errorf("the status that did arrive is lost: %+v", got)
	}
	_, err = New(Config{Allow: loopbackOnly}).Do(t.Context(), Request{URL: s.URL, Timeout: 50 * time.Millisecond})
	wantReason(t, err, ReasonTimeout)
}

func TestOtherFailures(t *testing.T) {
	t.Parallel()
	closed := serve(t, nil)
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := New(Config{Allow: loopbackOnly, Resolver: (&fakeDNS{}).resolver(t)})
	for raw, want := range map[string]Reason{
		closed.URL: ReasonConnection,
		secure.URL: ReasonTLS, // not a certificate that the machine trusts
		strings.Replace(plain.URL, "http:", "https:", 1): ReasonTLS,
		"https://nowhere.example.com/":                   ReasonDNS,
		"https://user@example.com/":                      ReasonURL,
	} {
		_, err := c.Do(t.Context(), Request{URL: raw})
		wantReason(t, err, want)
	}
	_, err := c.Do(t.Context(), Request{Method: "BAD METHOD", URL: plain.URL})
	wantReason(t, err, ReasonURL)
}

func TestTLSIsVerifiedAgainstTheGivenRoots(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	got, err := New(Config{Allow: loopbackOnly, RootCAs: roots}).Do(t.Context(), Request{URL: s.URL})
	if err != nil || got.Status != 200 {
		t.Errorf("%+v %v", got, err)
	}
}

// TestProxiesOfTheEnvironmentAreIgnored looks at the transports themselves:
// net/http reads the environment once a process, so a call could not tell.
func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	for _, client := range []*http.Client{c.open, c.inner} {
		if client.Transport.(*http.Transport).Proxy != nil {
			t.Error("a proxy may be used")
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var remotes sync.Map
	var used atomic.Int32
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, known := remotes.LoadOrStore(r.RemoteAddr, true); !known {
			used.Add(1)
		}
	})
	c := New(Config{Allow: loopbackOnly})
	defer c.CloseIdle()
	for range 5 {
		if _, err := c.Do(t.Context(), Request{URL: s.URL}); err != nil {
			t.Fatal(err)
		}
	}
	if used.Load() != 1 {
		t.Errorf("five calls used %d connections", used.Load())
	}
}
