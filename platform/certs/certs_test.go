package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/apierror"
)

// made is a folder with certificates for two edges and a gateway.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if err := Make(MakeConfig{Dir: dir, Edges: []string{"edge-1", "edge-2"}, Hosts: []string{"localhost", "127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func opened(t *testing.T, c SourceConfig) *Source {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMadeFiles(t *testing.T) {
	t.Parallel()
	dir := made(t)
	for name, mode := range map[string]os.FileMode{
		"ca.key": 0o600, "controlplane.key": 0o600, "edge-1.key": 0o600, "gateway.key": 0o600, "ca.pem": 0o644, "edge-2.pem": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for name, lifetime := range map[string]time.Duration{"ca": caLifetime, "controlplane": leafLifetime, "edge-1": leafLifetime} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore); got > lifetime+clockSkew || got < lifetime {
			t.Errorf("%s lives %v", name, got)
		}
	}
	pool, ca := x509.NewCertPool(), In(dir, "ca")
	b, err := os.ReadFile(ca.Cert)
	if err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	gateway, err := tls.LoadX509KeyPair(In(dir, Gateway).Cert, In(dir, Gateway).Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if _, err := gateway.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesOfEdges(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"edge-1": true, "eu.west.3": true, "controlplane": false, "gateway": false, "ca": false, "": false, "../x": false, "Edge": false, "a/b": false, "*": false,
	} {
		if err := Make(MakeConfig{Dir: t.TempDir(), Edges: []string{name}}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Certificates are renewed under the same CA, so that old and new work together.
func TestMakeRenews(t *testing.T) {
	t.Parallel()
	dir := made(t)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := Read(In(dir, "edge-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Make(MakeConfig{Dir: dir, Edges: []string{"edge-1"}}); err != nil {
		t.Fatal(err)
	}
	after, err := Read(In(dir, "edge-1"))
	if err != nil || !bytes.Equal(after.CA, ca) || bytes.Equal(after.Cert, before.Cert) || after.Equal(before) {
		t.Errorf("%v", err)
	}
}

func TestReadRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	dir := made(t)
	one, two := In(dir, "edge-1"), In(dir, "edge-2")
	large, empty := filepath.Join(dir, "large"), filepath.Join(dir, "empty")
	for name, b := range map[string][]byte{large: bytes.Repeat([]byte("x"), maxFile+1), empty: nil} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, f := range map[string]Files{
		"another's key":   {Cert: one.Cert, Key: two.Key},
		"no file":         {Cert: filepath.Join(dir, "none.pem"), Key: one.Key},
		"no key":          {Cert: one.Cert},
		"an empty CA":     {Cert: one.Cert, Key: one.Key, CA: empty},
		"a file too long": {Cert: large, Key: one.Key},
	} {
		_, err := Read(f)
		if err == nil {
			t.Errorf("%s is accepted", what)
		} else if strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: the error shows a key: %v", what, err)
		}
	}
}

// Material that changes is told of, and material that is of no use leaves what
// is in force.
func TestSourceFollowsItsFiles(t *testing.T) {
	t.Parallel()
	dir := made(t)
	var told []Material
	var refusal error
	s := opened(t, SourceConfig{Files: In(dir, "edge-1"), Changed: func(m Material) error { told = append(told, m); return refusal }})
	first := s.Material()
	if err := s.Refresh(); err != nil || len(told) != 1 || !told[0].Equal(first) {
		t.Fatalf("unchanged: %v, told %d times", err, len(told))
	}
	if err := os.WriteFile(s.config.Files.Key, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(); err == nil || !s.Material().Equal(first) {
		t.Fatalf("a broken key: %v", err)
	}
	if err := Make(MakeConfig{Dir: dir, Edges: []string{"edge-1"}}); err != nil {
		t.Fatal(err)
	}
	refusal = errors.New("not now")
	if err := s.Refresh(); !errors.Is(err, refusal) || !s.Material().Equal(first) {
		t.Fatalf("a refusal: %v", err)
	}
	refusal = nil
	if err := s.Refresh(); err != nil || s.Material().Equal(first) || len(told) != 3 {
		t.Fatalf("a change: %v, told %d times", err, len(told))
	}
}

func TestRunFollowsUntilTheEnd(t *testing.T) {
	t.Parallel()
	dir := made(t)
	changed := make(chan struct{}, 2)
	s := opened(t, SourceConfig{Files: In(dir, "edge-1"), Every: time.Millisecond, Changed: func(Material) error { changed <- struct{}{}; return nil }})
	<-changed
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	if err := Make(MakeConfig{Dir: dir, Edges: []string{"edge-1"}}); err != nil {
		t.Fatal(err)
	}
	<-changed
	cancel()
	<-ended
}

// caller is a client with the certificate of name in dir, or with none.
func caller(t *testing.T, dir, name string) *http.Client {
	t.Helper()
	c := &tls.Config{ServerName: ControlPlane, RootCAs: x509.NewCertPool()}
	b, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || !c.RootCAs.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(In(dir, name).Cert, In(dir, name).Key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// An edge is who its certificate says, or nobody.
func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	dir, other := made(t), made(t)
	refused := func(w http.ResponseWriter, _ *http.Request, err error) {
		if e, ok := errors.AsType[*apierror.Error](err); !ok || e.Code != decision.InvalidKey {
			t.Errorf("refused with %v", err)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	server := httptest.NewUnstartedServer(Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), refused))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = opened(t, SourceConfig{Files: In(dir, ControlPlane)}).Mutual()
	server.StartTLS()
	defer server.Close()
	for what, c := range map[string]struct {
		client *http.Client
		edge   string
		status int // 0: no connection at all
	}{
		"an edge":             {caller(t, dir, "edge-1"), "edge-1", 200},
		"the other edge":      {caller(t, dir, "edge-2"), "edge-2", 200},
		"another's name":      {caller(t, dir, "edge-1"), "edge-2", 401},
		"an empty name":       {caller(t, dir, "edge-1"), "", 401},
		"no certificate":      {caller(t, dir, ""), "edge-1", 0},
		"a server's":          {caller(t, dir, Gateway), "edge-1", 0},
		"the control plane's": {caller(t, dir, ControlPlane), ControlPlane, 0},
		"one of another CA":   {otherCA(t, dir, other), "edge-1", 0},
	} {
		req, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(edgeapi.EdgeHeader, c.edge)
		res, err := c.client.Do(req)
		if c.status == 0 {
			if err == nil {
				t.Errorf("%s: gets in: %d", what, res.StatusCode)
			}
			continue
		}
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: %v, %v, want %d", what, res, err, c.status)
		}
	}
}

// otherCA trusts the server of dir and shows a certificate of other's CA.
func otherCA(t *testing.T, dir, other string) *http.Client {
	t.Helper()
	c, o := caller(t, dir, ""), caller(t, other, "edge-1")
	c.Transport.(*http.Transport).TLSClientConfig.Certificates = o.Transport.(*http.Transport).TLSClientConfig.Certificates
	return c
}

func TestServerShowsWhatIsInForce(t *testing.T) {
	t.Parallel()
	dir := made(t)
	s := opened(t, SourceConfig{Files: In(dir, ControlPlane)})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.TLS = s.Server()
	server.StartTLS()
	defer server.Close()
	serial := func() string {
		res, err := caller(t, dir, "").Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.TLS.PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	if err := errors.Join(Make(MakeConfig{Dir: dir}), s.Refresh()); err != nil {
		t.Fatal(err)
	}
	if serial() == before {
		t.Error("the old certificate is shown")
	}
}

func TestStreamNames(t *testing.T) {
	t.Parallel()
	leaf := &x509.Certificate{DNSNames: []string{"edge-1", ControlPlane}}
	verified := tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	with := func(info credentials.AuthInfo) context.Context {
		return peer.NewContext(t.Context(), &peer.Peer{AuthInfo: info})
	}
	for what, c := range map[string]struct {
		ctx  context.Context
		edge string
		want bool
	}{
		"its own":            {with(credentials.TLSInfo{State: verified}), "edge-1", true},
		"another's":          {with(credentials.TLSInfo{State: verified}), "edge-2", false},
		"none":               {with(credentials.TLSInfo{State: verified}), "", false},
		"a reserved one":     {with(credentials.TLSInfo{State: verified}), ControlPlane, false},
		"one not verified":   {with(credentials.TLSInfo{}), "edge-1", false},
		"without TLS":        {with(nil), "edge-1", false},
		"without connection": {t.Context(), "edge-1", false},
	} {
		if got := StreamNames(c.ctx, c.edge); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
