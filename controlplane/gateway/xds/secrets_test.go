package xds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/certs"
)

// authority is a folder with a certificate authority, and a certificate of it for
// the edge and one for the product.
func authority(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := certs.Make(certs.MakeConfig{Dir: dir, Edges: []string{"edge"}, Hosts: []string{"product.example"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// demanding is what a product speaks that believes only the authority of dir.
func demanding(t *testing.T, dir string) *tls.Config {
	t.Helper()
	f := certs.In(dir, certs.Gateway)
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(certs.In(dir, "ca").Cert)
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
}

// install moves the edge's files of an authority to where the document says they are.
func install(t *testing.T, from, to string) {
	t.Helper()
	own := certs.In(from, "edge")
	for name, source := range map[string]string{"ca.pem": certs.In(from, "ca").Cert, "edge.pem": own.Cert, "edge.key": own.Key} {
		b, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name+".new"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(to, name+".new"), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A product and its edges get certificates of another authority: nothing is
// published and Envoy is not restarted.
func TestCertificatesOfProductsAreReplaced(t *testing.T) {
	t.Parallel()
	was, is, files := authority(t), authority(t), t.TempDir()
	var now atomic.Pointer[tls.Config]
	now.Store(demanding(t, was))
	product := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "docs")
	}))
	product.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }}
	product.StartTLS()
	t.Cleanup(product.Close)
	install(t, was, files)

	s, addr := newServer(t, Config{})
	d := variant(t, 1, product.Listener.Addr().String())
	at := func(name string) string { return filepath.Join(files, name) }
	d.Products[len(d.Products)-1].TLS = &config.TLS{ServerName: "product.example", CAFile: at("ca.pem"), CertFile: at("edge.pem"), KeyFile: at("edge.key")}
	publish(t, s, 1, d)
	admin, _ := startEnvoy(t, addr)
	url := poll(t, func() string { return gateway(admin) })
	serves := func() string {
		got := get(url + "/docs/errors")
		if got != "200 docs" {
			return ""
		}
		return got
	}
	poll(t, serves)
	now.Store(demanding(t, is))
	if got := get(url + "/docs/errors"); !strings.HasPrefix(got, "503 ") {
		t.Errorf("the product believes others, and the edge has not heard of it: %s", got)
	}
	install(t, is, files)
	poll(t, serves)
	if s.Version() != 1 {
		t.Errorf("version %d", s.Version())
	}
}
