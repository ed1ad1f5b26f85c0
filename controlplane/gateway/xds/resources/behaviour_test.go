package resources

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// echo answers with what it was asked for, and reads the whole body.
func echo(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	peer := ""
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		peer = " from " + r.TLS.PeerCertificates[0].Subject.Organization[0]
	}
	fmt.Fprintf(w, "%s %s %s %d %v %s%s", r.Proto, r.Host, r.URL.RequestURI(), n, err == nil, r.Header.Get("X-Note"), peer)
}

// guarded serves echo by TLS to those who have a certificate of its own
// authority, and says how an edge gets in. Its authority, certificate and key
// are its own.
func guarded(t *testing.T) config.Product {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	cert := s.Certificate()
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAnyClientCert, pool
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	certFile := write("cert.pem", "CERTIFICATE", cert.Raw)
	return config.Product{Name: "guarded", Upstreams: []config.Upstream{{Address: s.Listener.Addr().String()}}, HTTP2: true, Host: "guarded.example",
		TLS: &config.TLS{ServerName: "example.com", CAFile: certFile, CertFile: certFile, KeyFile: write("key.pem", "PRIVATE KEY", key)}}
}

// behaviour is a gateway with a product and the given routes, which are open.
func behaviour(t *testing.T, routes ...config.Route) string {
	t.Helper()
	return behaviourOf(t, nil, routes...)
}

// behaviourOf is behaviour with schemas of the product.
func behaviourOf(t *testing.T, schemas map[string]config.JSONSchema, routes ...config.Route) string {
	t.Helper()
	plain := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(plain.Close)
	d := defaults(t)
	d.AnonymousPerMinute = 1 << 20
	safe := guarded(t)
	stranger := safe
	stranger.Name, stranger.TLS = "stranger", &config.TLS{ServerName: "other.example", CAFile: safe.TLS.CAFile, CertFile: safe.TLS.CertFile, KeyFile: safe.TLS.KeyFile}
	nobody := safe
	nobody.Name, nobody.TLS = "nobody", &config.TLS{ServerName: "example.com", CAFile: safe.TLS.CAFile}
	d.Products = append(d.Products, safe, stranger, nobody, config.Product{Name: "plain", Schemas: schemas, Upstreams: []config.Upstream{{Address: plain.Listener.Addr().String()}},
		CORS: &config.CORS{Origins: []string{"https://app.example", "https://*.app.example"}, Credentials: true}})
	for _, r := range routes {
		if r.Product == "" && r.Respond == nil {
			r.Product = "plain"
		}
		r.Auth = []string{"none"}
		d.Routes = append(d.Routes, r)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	return "http://" + running(t, static(t, build(t, d, Options{Addresses: addresses, DocsBase: "http://gw"}), Addresses{Gateway: "127.0.0.1:0"}))
}

// request makes a request with headers, a Host among them.
func request(t *testing.T, method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// What a route says of hosts, headers, paths and TLS is what a real Envoy does.
func TestRoutesInARealEnvoy(t *testing.T) {
	t.Parallel()
	url := behaviour(t,
		config.Route{Name: "any", Path: "/v1/things/{id}", Rewrite: &config.Rewrite{Path: "/x/{id}/any", Host: "any.internal"}},
		config.Route{Name: "host", Path: "/v1/things/{name}", Hosts: []string{"named.example"}, Rewrite: &config.Rewrite{Path: "/host"}},
		config.Route{Name: "below", Path: "/v1/things/{name}", Hosts: []string{"*.example"}, Rewrite: &config.Rewrite{Path: "/below"}},
		config.Route{Name: "second", Path: "/v1/things/{id}", Headers: []config.HeaderMatch{{Name: "X-Version", Value: "2"}}, Rewrite: &config.Rewrite{Path: "/second"}},
		config.Route{Name: "tree", Path: "/v1/tree/*", Rewrite: &config.Rewrite{Prefix: "/"}},
		config.Route{Name: "moved", Path: "/v1/old/{a}/in/{b}", Rewrite: &config.Rewrite{Path: "/new/{b}/{a}"}},
		config.Route{Name: "tail", Path: "/v1/tail/{a}/*", Rewrite: &config.Rewrite{Path: "/{a}/t/*"}},
		config.Route{Name: "guarded", Path: "/v1/guarded", Product: "guarded"},
		config.Route{Name: "stranger", Path: "/v1/stranger", Product: "stranger"},
		config.Route{Name: "nobody", Path: "/v1/nobody", Product: "nobody"},
	)
	own := strings.TrimPrefix(url, "http://")
	for _, c := range []struct {
		path    string
		headers []string
		want    string // "": not 200
	}{
		{"/v1/things/7", nil, "HTTP/1.1 any.internal /x/7/any 0 true "},
		{"/v1/things/7?q=1", nil, "HTTP/1.1 any.internal /x/7/any?q=1 0 true "},
		{"/v1/things/7", []string{"Host", "named.example"}, "HTTP/1.1 named.example /host 0 true "},
		{"/v1/things/7", []string{"Host", "NAMED.example:99"}, "HTTP/1.1 NAMED.example:99 /host 0 true "},
		{"/v1/things/7", []string{"Host", "a.b.example"}, "HTTP/1.1 a.b.example /below 0 true "},
		{"/v1/things/7", []string{"Host", "example"}, "HTTP/1.1 any.internal /x/7/any 0 true "},
		{"/v1/things/7", []string{"X-Version", "2"}, "HTTP/1.1 " + own + " /second 0 true "},
		{"/v1/things/7", []string{"X-Version", "2", "Host", "named.example"}, "HTTP/1.1 named.example /host 0 true "},
		{"/v1/tree/a/b", nil, "HTTP/1.1 " + own + " /a/b 0 true "},
		{"/v1/old/1/in/2", nil, "HTTP/1.1 " + own + " /new/2/1 0 true "},
		{"/v1/tail/1/2/3", nil, "HTTP/1.1 " + own + " /1/t/2/3 0 true "},
		{"/v1/guarded", nil, "HTTP/2.0 guarded.example /v1/guarded 0 true  from Acme Co"},
		{"/v1/stranger", nil, ""},
		{"/v1/nobody", nil, ""},
	} {
		res, body := request(t, "GET", url+c.path, nil, c.headers...)
		if (res.StatusCode == 200) != (c.want != "") || c.want != "" && body != c.want {
			t.Errorf("%s %v: %d %q, want %q", c.path, c.headers, res.StatusCode, body, c.want)
		}
	}
}

// Bodies are held to the limit of their route, whether they say their length or
// not; without one they stream through.
func TestBodyLimitsInARealEnvoy(t *testing.T) {
	t.Parallel()
	url := behaviour(t,
		config.Route{Name: "small", Path: "/v1/small", BodyLimit: 1000},
		config.Route{Name: "usual", Path: "/v1/usual"},
		config.Route{Name: "stream", Path: "/v1/stream", Streaming: true},
	)
	for _, c := range []struct {
		path    string
		bytes   int
		chunked bool
		status  int
	}{
		{"/v1/small", 1000, false, 200}, {"/v1/small", 1001, false, 413}, {"/v1/small", 1000, true, 200}, {"/v1/small", 200_000, true, 413},
		{"/v1/usual", 10 << 20, false, 200}, {"/v1/usual", 10<<20 + 1, false, 413},
		{"/v1/stream", 12 << 20, false, 200}, {"/v1/stream", 12 << 20, true, 200},
	} {
		var body io.Reader = strings.NewReader(strings.Repeat("a", c.bytes))
		if c.chunked {
			body = io.MultiReader(body) // whose length nobody knows
		}
		res, text := request(t, "POST", url+c.path, body)
		if res.StatusCode != c.status || c.status == 413 && !strings.Contains(text, "request_too_large") || c.status == 200 && !strings.Contains(text, fmt.Sprintf(" %d true ", c.bytes)) {
			t.Errorf("%s, %d bytes, chunked %v: %d %s", c.path, c.bytes, c.chunked, res.StatusCode, text)
		}
		if res.Header.Get("X-Ratelimit-Limit") == "" {
			t.Errorf("%s: no rate headers", c.path)
		}
	}
}

// Pages of origins that may call a route can, and can read its refusals; others
// cannot, and nothing changes for callers that are no pages.
func TestCORSInARealEnvoy(t *testing.T) {
	t.Parallel()
	url := behaviour(t,
		config.Route{Name: "shared", Methods: []string{"GET", "PUT"}, Path: "/v1/shared/{id}"},
		config.Route{Name: "own", Methods: []string{"GET"}, Path: "/v1/own", CORS: &config.CORS{Origins: []string{"*"}, Headers: []string{"x-a"}, Expose: []string{"x-b"}, MaxAge: "5s"}},
		config.Route{Name: "closed", Methods: []string{"GET"}, Path: "/v1/closed", CORS: &config.CORS{}},
		config.Route{Name: "small", Methods: []string{"POST"}, Path: "/v1/small", BodyLimit: 1},
	)
	for _, c := range []struct {
		what, method, path, origin, asks string
		status                           int
		allowed                          string
	}{
		{"a page", "GET", "/v1/shared/1", "https://app.example", "", 200, "https://app.example"},
		{"a page below", "GET", "/v1/shared/1", "https://eu.app.example", "", 200, "https://eu.app.example"},
		{"a page elsewhere", "GET", "/v1/shared/1", "https://app.example.evil", "", 200, ""},
		{"no page", "GET", "/v1/shared/1", "", "", 200, ""},
		{"a question", "OPTIONS", "/v1/shared/1", "https://app.example", "PUT", 200, "https://app.example"},
		{"a question elsewhere", "OPTIONS", "/v1/shared/1", "https://evil.example", "PUT", 200, ""},
		{"a question for another method", "OPTIONS", "/v1/shared/1", "https://app.example", "DELETE", 204, ""},
		{"all origins", "GET", "/v1/own", "https://any.example", "", 200, "https://any.example"},
		{"a question of any", "OPTIONS", "/v1/own", "https://any.example", "GET", 200, "https://any.example"},
		{"a route that is closed", "GET", "/v1/closed", "https://app.example", "", 200, ""},
		{"a refusal", "POST", "/v1/small", "https://app.example", "", 413, "https://app.example"},
	} {
		headers := []string{}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		if c.asks != "" {
			headers = append(headers, "Access-Control-Request-Method", c.asks)
		}
		var body io.Reader
		if c.method == "POST" {
			body = strings.NewReader("too much")
		}
		res, text := request(t, c.method, url+c.path, body, headers...)
		if got := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != c.status || got != c.allowed {
			t.Errorf("%s: %d, allowed %q: %s", c.what, res.StatusCode, got, text)
		}
		for _, h := range []string{"X-Ratelimit-Limit", "X-Request-Id"} {
			if len(res.Header.Values(h)) != 1 {
				t.Errorf("%s: %s is %q", c.what, h, res.Header.Values(h))
			}
		}
	}
	res, _ := request(t, "OPTIONS", url+"/v1/own", nil, "Origin", "https://any.example", "Access-Control-Request-Method", "GET")
	for h, want := range map[string]string{"Methods": "GET, HEAD", "Headers": "x-a"} {
		if got := res.Header.Get("Access-Control-Allow-" + h); got != want {
			t.Errorf("%s: %q, want %q", h, got, want)
		}
	}
	if got := res.Header.Get("Access-Control-Max-Age"); got != "5" {
		t.Errorf("max age %q", got)
	}
}
