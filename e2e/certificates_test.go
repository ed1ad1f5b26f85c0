package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// named is a stack whose edge has certificates of an authority by name.
type named struct {
	*stack
	*pebble
	roots *x509.CertPool
	dir   string // of the certificates between edges and control planes
}

// namedStack starts one.
func namedStack(t testing.TB) *named {
	t.Helper()
	addrs, err := freeport.Addrs(2)
	if err != nil {
		t.Fatal(err)
	}
	plain, gateway := addrs[0], addrs[1]
	p := startPebble(t, plain, gateway, 86400)
	dir := filepath.Join(t.TempDir(), "certs")
	makeCerts(t, dir, "--edge", "edge-1")
	s := own(t, map[string]string{
		"SLUICE_GATEWAY_ADDR": gateway, "SLUICE_PLAIN_ADDR": plain, "SLUICE_PROFILE": "gateway", "SLUICE_HTTP3": "1",
		"SLUICE_TLS_CERT": "self-signed", "SLUICE_XDS_TLS_DIR": dir,
		"SLUICE_ACME_CA": p.ca, "SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8", "SLUICE_ACME_DNS_HOOK": p.hook(t),
	})
	return &named{s, p, p.roots(t), dir}
}

// apply publishes the built-in routes with certificates.
func (n *named) apply(t *testing.T, certificates ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	text := "include: [builtin]\nanonymous_per_minute: 100000000\nproducts: []\nroutes: [{name: ping, path: /ping, auth: [none], respond: {status: 200, body: pong}}]\n"
	if len(certificates) > 0 {
		text += "certificates:\n" + strings.Join(certificates, "")
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.wantCommand(t, n.cli(), 0, "", "apply", "-f", file)
}

func (n *named) cli() map[string]string { return map[string]string{"SLUICE_STATE_DIR": n.stack.dir} }

// entry is one of a document's certificates.
func (n *named) entry(challenge string, hosts ...string) string {
	return fmt.Sprintf("- hosts: [%s]\n  acme: {challenge: %s, directory: %q, email: ops@example.com}\n", `"`+strings.Join(hosts, `", "`)+`"`, challenge, n.directory)
}

// entries are a name for each kind of challenge.
func (n *named) entries() []string {
	return []string{n.entry("http-01", "api.example.com", "www.example.com"), n.entry("tls-alpn-01", "alpn.example.com"), n.entry("dns-01", "*.wild.example.com", "wild.example.com")}
}

// shows reports the certificate that a client is shown that asks for a host and
// believes the authority.
func (n *named) shows(host string) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", n.front(), &tls.Config{RootCAs: n.roots, ServerName: host})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

func (n *named) eventuallyShows(t testing.TB, host string) *x509.Certificate {
	t.Helper()
	var c *x509.Certificate
	err := harness.Until(func() (err error) {
		c, err = n.shows(host)
		return err
	})
	if err != nil {
		_, out, _ := sluice(t, n.cli(), "certificates", "list", "-o", "json")
		t.Fatalf("a certificate for %s: %v: %s", host, err, out)
	}
	return c
}

// ask asks for /ping of a host over a transport.
func (n *named) ask(rt http.RoundTripper, host string) error {
	req, err := http.NewRequest(http.MethodGet, "https://"+n.front()+"/ping", nil)
	if err != nil {
		return err
	}
	req.Host = host
	res, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}

// A name appears in the configuration, and edges show a certificate of the authority
// for it. Renewal fails no request; without a control plane edges, and an edge that is
// restarted, go on.
func TestNamedCertificatesOfAnAuthority(t *testing.T) {
	t.Parallel()
	n := namedStack(t)
	n.apply(t, n.entries()...)
	for _, host := range []string{"api.example.com", "www.example.com", "alpn.example.com", "any.wild.example.com", "wild.example.com"} {
		n.eventuallyShows(t, host)
	}
	conn, err := tls.Dial("tcp", n.front(), &tls.Config{InsecureSkipVerify: true, ServerName: "other.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if c := conn.ConnectionState().PeerCertificates[0]; c.VerifyHostname("unknown.invalid") != nil {
		t.Errorf("other names are not shown the edge's own certificate, but %v", c.DNSNames)
	}
	t.Run("plain requests go to https", func(t *testing.T) { plainRequests(t, n) })
	t.Run("renewal", func(t *testing.T) { renewalUnderLoad(t, n) })
	t.Run("uploaded", func(t *testing.T) { uploadedCertificate(t, n) })
	t.Run("secrets stay secret", func(t *testing.T) { certificateSecrets(t, n) })
	t.Run("killed while issuing", func(t *testing.T) { killedWhileIssuing(t, n) })
	t.Run("no control plane", func(t *testing.T) { withoutControlPlane(t, n) })
}

func plainRequests(t *testing.T, n *named) {
	for path, want := range map[string]struct {
		status   int
		location string
	}{
		"/v1/health?a=b":                                           {http.StatusPermanentRedirect, "https://api.example.com:" + fmt.Sprint(portOf(t, n.front())) + "/v1/health?a=b"},
		"/.well-known/acme-challenge/unknown":                      {http.StatusNotFound, ""},
		"/.well-known/acme-challenge/../x":                         {http.StatusPermanentRedirect, "https://api.example.com:" + fmt.Sprint(portOf(t, n.front())) + "/.well-known/x"},
		"/.well-known/acme-challenge/a/b":                          {http.StatusUnauthorized, ""},
		"/.well-known/acme-challenge/" + strings.Repeat("x", 5000): {http.StatusNotFound, ""},
	} {
		r, err := rawly(n.env["SLUICE_PLAIN_ADDR"], "GET "+path+" HTTP/1.1\r\nHost: api.example.com\r\n\r\n", patience)
		if err != nil || r.StatusCode != want.status || r.Header.Get("Location") != want.location {
			t.Errorf("%.60s: %v, %v", path, r, err)
		}
	}
}

// Each certificate is renewed while requests run over connections that are kept and
// over new ones.
func renewalUnderLoad(t *testing.T, n *named) {
	const host = "api.example.com"
	config := func() *tls.Config { return &tls.Config{RootCAs: n.roots, ServerName: host} }
	kept := &http.Transport{TLSClientConfig: config(), ForceAttemptHTTP2: true}
	defer kept.CloseIdleConnections()
	fresh := &http.Transport{TLSClientConfig: config(), DisableKeepAlives: true}
	stop, done := make(chan struct{}), make(chan []string)
	for _, rt := range []http.RoundTripper{kept, fresh} {
		go func() {
			_, failures := load(stop, 1, func() error { return n.ask(rt, host) })
			done <- failures
		}()
	}
	for _, name := range []string{"api.example.com", "alpn.example.com", "wildcard.wild.example.com"} {
		asked := strings.Replace(name, "wildcard", "a", 1)
		before := n.eventuallyShows(t, asked)
		n.wantCommand(t, n.cli(), 0, "", "certificates", "renew", name)
		eventually(t, name+" is renewed", func() error {
			c, err := n.shows(asked)
			if err == nil && c.Equal(before) {
				err = errors.New("the old one")
			}
			return err
		})
	}
	n.apply(t, append(n.entries(), n.entry("http-01", "more.example.com"))...)
	n.eventuallyShows(t, "more.example.com")
	close(stop)
	for range 2 {
		if failures := <-done; len(failures) > 0 {
			t.Errorf("%d requests failed, first: %s", len(failures), failures[0])
		}
	}
}

// An operator's own certificate is shown at once, and no longer when it is removed.
func uploadedCertificate(t *testing.T, n *named) {
	dir := t.TempDir()
	makeCerts(t, dir, "--host", "own.example.net")
	cert, key := filepath.Join(dir, "gateway.pem"), filepath.Join(dir, "gateway.key")
	n.wantCommand(t, n.cli(), 0, "valid", "certificates", "add", "mine", "--cert", cert, "--key", key)
	config := trusting(t, dir)
	config.ServerName = "own.example.net"
	eventually(t, "the uploaded certificate is shown", func() error { _, err := n.serial(config); return err })
	n.wantCommand(t, n.cli(), 1, "private_key", "certificates", "add", "mine", "--cert", cert, "--key", filepath.Join(n.dir, "gateway.key"))
	n.wantCommand(t, n.cli(), 1, "configuration", "certificates", "remove", "api.example.com")
	n.wantCommand(t, n.cli(), 0, "removed", "certificates", "remove", "mine")
	eventually(t, "the removed certificate is gone", func() error {
		if _, err := n.serial(config); err == nil {
			return errors.New("it is shown")
		}
		return nil
	})
}

// Files with keys are their owner's alone, and no answer shows one.
func certificateSecrets(t *testing.T, n *named) {
	found := false
	err := filepath.WalkDir(n.stack.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Base(path) != "config.state" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if strings.Contains(string(text), "PRIVATE KEY") {
			found = true
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s can be read by others: %v", path, info.Mode())
			}
		}
		return err
	})
	if err != nil || !found {
		t.Errorf("no edge has saved its certificates: %v", err)
	}
	r := call(t, http.MethodGet, "http://"+n.env["SLUICE_ENVOY_ADMIN_ADDR"]+"/config_dump", "", nil)
	if strings.Contains(r.body, "PRIVATE KEY") || !strings.Contains(r.body, "on_demand_secret") {
		t.Error("Envoy shows a key, or no certificates")
	}
	_, out, _ := sluice(t, n.cli(), "certificates", "show", "api.example.com", "-o", "json")
	if strings.Contains(out, "PRIVATE") || !strings.Contains(out, "BEGIN CERTIFICATE") {
		t.Error(out)
	}
}

// A control plane that is killed while certificates are issued and renewed leaves those
// of before in force, and gets them when it is back.
func killedWhileIssuing(t *testing.T, n *named) {
	before := n.eventuallyShows(t, "api.example.com")
	n.wantCommand(t, n.cli(), 0, "", "certificates", "renew", "api.example.com")
	n.apply(t, append(n.entries(), n.entry("http-01", "more.example.com"), n.entry("dns-01", "killed.example.com"))...)
	for range 3 {
		if err := syscall.Kill(n.child(t, "controlplane"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := n.shows("www.example.com"); err != nil {
			t.Error(err)
		}
		eventually(t, "the control plane is back", func() error {
			r, err := try(http.MethodGet, n.dev["SLUICE_ADMIN_URL"]+"/health", "", nil)
			return unless(err, r, http.StatusOK)
		})
	}
	n.eventuallyShows(t, "killed.example.com")
	eventually(t, "the renewal that was broken off is made", func() error {
		c, err := n.shows("api.example.com")
		if err == nil && c.Equal(before) {
			err = errors.New("the old one")
		}
		return err
	})
}

// Edges show what they have while no control plane answers, also after a restart.
func withoutControlPlane(t *testing.T, n *named) {
	control, envoy := n.child(t, "controlplane"), n.envoy(t)
	if err := syscall.Kill(control, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(control, syscall.SIGCONT) }()
	for _, host := range []string{"api.example.com", "any.wild.example.com"} {
		if _, err := n.shows(host); err != nil {
			t.Error(err)
		}
	}
	if err := syscall.Kill(envoy, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another Envoy serves", func() error {
		return n.ask(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.roots, ServerName: "api.example.com"}, DisableKeepAlives: true}, "api.example.com")
	})
	for _, host := range []string{"alpn.example.com", "any.wild.example.com", "more.example.com"} {
		if _, err := n.shows(host); err != nil {
			t.Error(err)
		}
	}
}
