package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// pebble is an authority of ACME that believes one edge's ports, and a DNS server in
// which every name is this machine.
type pebble struct {
	*harness.Process
	directory, management string // addresses
	records               string // where records of DNS are set
	ca                    string // file of the authority that signs for directory
}

// buildPebble builds the two programs that e2e/pebble pins.
func buildPebble(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const commands = "github.com/letsencrypt/pebble/v2/cmd/"
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir+"/", commands+"pebble", commands+"pebble-challtestsrv")
	cmd.Dir, cmd.Env = "pebble", append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// startPebble starts an authority that asks at the ports of the addresses plain and
// secure, whatever the name. Certificates live for so many seconds.
func startPebble(t testing.TB, plain, secure string, life int) *pebble {
	t.Helper()
	bin, dir := buildPebble(t), t.TempDir()
	makeCerts(t, dir)
	addrs, err := freeport.Addrs(4)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": addrs[0], "managementListenAddress": addrs[1],
		"certificate": filepath.Join(dir, "gateway.pem"), "privateKey": filepath.Join(dir, "gateway.key"),
		"httpPort": portOf(t, plain), "tlsPort": portOf(t, secure), "keyAlgorithm": "ecdsa",
		"profiles": map[string]any{"default": map[string]any{"description": "for tests", "validityPeriod": life}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	running(t, exec.Command(filepath.Join(bin, "pebble-challtestsrv"), "-dnsserver", addrs[2], "-management", addrs[3],
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""))
	cmd := exec.Command(filepath.Join(bin, "pebble"), "-config", file, "-dnsserver", addrs[2])
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=5")
	p := &pebble{running(t, cmd), "https://" + addrs[0] + "/dir", "https://" + addrs[1], "http://" + addrs[3], filepath.Join(dir, "ca.pem")}
	eventually(t, "the authority answers", func() error {
		_, err := p.get("/roots/0")
		return err
	})
	return p
}

func portOf(t testing.TB, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// get reads a page of the management interface.
func (p *pebble) get(path string) ([]byte, error) {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer c.CloseIdleConnections()
	res, err := c.Get(p.management + path)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// roots are whom to believe that believes the authority.
func (p *pebble) roots(t testing.TB) *x509.CertPool {
	t.Helper()
	text, err := p.get("/roots/0")
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err, string(text))
	}
	return pool
}

// hook is one for dns-01: it sets records in the DNS server.
func (p *pebble) hook(t testing.TB) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Action, Name, Value string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		path := map[string]string{"present": "/set-txt", "cleanup": "/clear-txt"}[asked.Action]
		body, _ := json.Marshal(map[string]string{"host": asked.Name + ".", "value": asked.Value})
		res, err := http.Post(p.records+path, "application/json", bytes.NewReader(body))
		if err != nil || res.StatusCode != http.StatusOK {
			http.Error(w, fmt.Sprint(res, err), http.StatusBadGateway)
			return
		}
		res.Body.Close()
	}))
	t.Cleanup(s.Close)
	return s.URL
}
