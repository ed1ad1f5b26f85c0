package xds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/envoy"
)

// selfSigned makes a certificate for hosts, PEM, and its serial number.
func selfSigned(t testing.TB, hosts ...string) (chain, key []byte, serial string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: n, DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), n.String()
}

// secure starts an Envoy that speaks TLS, and returns where, and its process.
func secure(t testing.TB, addr string) (front string, pid int) {
	t.Helper()
	dir := t.TempDir()
	chain, key, _ := selfSigned(t, "default.example")
	if err := envoy.WriteSecret(dir, chain, key); err != nil {
		t.Fatal(err)
	}
	admin, pid := startEnvoyWith(t, addr, fmt.Sprintf(", tls_secret: %q", filepath.Join(dir, envoy.SecretListener+".json")))
	return strings.TrimPrefix(poll(t, func() string { return gateway(admin) }), "http://"), pid
}

// shown is the serial number of the certificate that is shown for a host; "" when none is.
func shown(front, host string) string {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", front, &tls.Config{InsecureSkipVerify: true, ServerName: host})
	if err != nil {
		return ""
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// An edge shows the certificate of the name that is asked for, also of a wildcard, and
// its own for others; a connection lives on while certificates are added and renewed.
func TestCertificatesByName(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 1, document(t))
	front, _ := secure(t, addr)
	own := shown(front, "a.example.com")
	certificates := map[string]*tlsv3.Secret{}
	give := func(host string) (serial string) {
		chain, key, serial := selfSigned(t, host)
		certificates[host] = resources.CertificateSecret(host, chain, key)
		if err := s.PublishCertificates(t.Context(), certificates); err != nil {
			t.Fatal(err)
		}
		return serial
	}
	want := func(host, serial string) {
		t.Helper()
		poll(t, func() string {
			if got := shown(front, host); got != serial {
				return ""
			}
			return serial
		})
	}
	first := give("a.example.com")
	want("a.example.com", first)
	conn, err := tls.Dial("tcp", front, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wild := give("*.wild.example.com")
	want("x.wild.example.com", wild)
	renewed := give("a.example.com")
	want("a.example.com", renewed)
	want("b.example.com", own)
	want("other.example", own)
	want("x.y.wild.example.com", own)
	delete(certificates, "*.wild.example.com")
	if err := s.PublishCertificates(t.Context(), certificates); err != nil {
		t.Fatal(err)
	}
	want("x.wild.example.com", own)
	if _, err := io.WriteString(conn, "GET /docs/errors HTTP/1.1\r\nHost: a.example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection of before was cut: %v", err)
	}
	last := give("last.example.com")
	want("last.example.com", last)
	want("a.example.com", renewed)
	if e := s.Edges()[0]; !e.Current {
		t.Errorf("%+v", e)
	}
}

// Connections of tls-alpn-01 go to the agent, and to nobody where there is none; others
// are not affected.
func TestChallengesGoToTheAgent(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	d := document(t)
	d.Certificates = []config.Certificate{{Name: "asked", Hosts: []string{"asked.example.com"}, ACME: &config.ACME{Challenge: config.TLSALPN01, Directory: config.LetsEncrypt}}}
	publish(t, s, 1, d)
	front, _ := secure(t, addr)
	for proto, answered := range map[string]bool{"acme-tls/1": false, "h2": true, "http/1.1": true} {
		conn, err := tls.Dial("tcp", front, &tls.Config{InsecureSkipVerify: true, ServerName: "asked.example.com", NextProtos: []string{proto}})
		if answered != (err == nil) {
			t.Errorf("%s: %v", proto, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
}

// BenchmarkCertificates measures what certificates cost an edge: its memory with n of
// them, and CPU on its main thread for one that is renewed.
func BenchmarkCertificates(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, addr := newServer(b, Config{AckTimeout: time.Minute})
			publish(b, s, 1, document(b))
			certificates := map[string]*tlsv3.Secret{}
			give := func(slot int) (host, serial string) {
				host = fmt.Sprintf("host%d.example.com", slot)
				chain, key, serial := selfSigned(b, host)
				certificates[host] = resources.CertificateSecret(host, chain, key)
				return host, serial
			}
			front, pid := secure(b, addr)
			before := resident(b, pid)
			began := time.Now()
			var host, serial string
			for slot := range n {
				host, serial = give(slot)
			}
			show := func() {
				if err := s.PublishCertificates(b.Context(), certificates); err != nil {
					b.Fatal(err)
				}
				poll(b, func() string {
					if shown(front, host) != serial {
						return ""
					}
					return "yes"
				})
			}
			show()
			took := time.Since(began)
			main, _ := spent(b, []int{pid})
			for b.Loop() {
				host, serial = give(n / 2)
				show()
			}
			then, _ := spent(b, []int{pid})
			b.ReportMetric(float64((then-main).Microseconds())/1000/float64(b.N), "main-ms/renewal")
			b.ReportMetric(float64(resident(b, pid)-before)/(1<<20), "MB")
			b.ReportMetric(took.Seconds(), "s/all")
		})
	}
}

// resident is the memory of a process, in bytes.
func resident(b *testing.B, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
