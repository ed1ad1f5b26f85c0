//go:build clients

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice.dev/sluice/e2e/freeport"
)

// nginxPackages are Debian's, unpacked beside the system.
var nginxPackages = []string{"nginx", "nginx-common", "libpcre3"}

// installNGINX returns a folder with Debian's NGINX in it.
func installNGINX(t *testing.T) (dir string) { return debian(t, nginxPackages...) }

// documentedNGINX is the configuration of docs/behind-nginx.md, with addresses and files of
// this test in place of those of a machine of its own.
func documentedNGINX(t *testing.T, dir, certs, front, edge string) (file string) {
	t.Helper()
	page, err := os.ReadFile("../docs/behind-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```nginx\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no configuration")
	}
	for from, to := range map[string]string{
		"listen 443": "listen " + front, "server 127.0.0.1:8080": "server " + edge,
		"/etc/nginx/api.example.com": filepath.Join(certs, "gateway"), "/var/log/nginx/api.log": filepath.Join(dir, "api.log"),
		"http {": "http {\n" + temporary(dir),
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("the page's configuration has no %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	file = filepath.Join(dir, "nginx.conf")
	text = fmt.Sprintf("daemon off;\nmaster_process off;\npid %s;\nerror_log stderr;\n%s", filepath.Join(dir, "pid"), text)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// temporary are NGINX's folders for files.
func temporary(dir string) (lines string) {
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		lines += fmt.Sprintf("    %s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	return lines
}

// The page's configuration of NGINX, in Debian's NGINX, before an edge: keys are asked for, and
// the log has the id of each request.
func TestClientsBehindNGINX(t *testing.T) {
	t.Parallel()
	s := own(t, nil)
	s.configure(t, "trusted_proxies: 1")
	addrs, err := freeport.Addrs(1)
	if err != nil {
		t.Fatal(err)
	}
	dir, certs := installNGINX(t), t.TempDir()
	makeCerts(t, certs, "--host", "api.example.com")
	config := documentedNGINX(t, dir, certs, addrs[0], strings.TrimPrefix(s.url(""), "http://"))
	cmd := exec.Command(filepath.Join(dir, "usr/sbin/nginx"), "-p", dir, "-c", config)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "usr/lib/x86_64-linux-gnu")+":"+filepath.Join(dir, "lib/x86_64-linux-gnu"))
	running(t, cmd)
	trust := trusting(t, certs)
	trust.ServerName = "api.example.com"
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	ask := func(path, key string, header ...string) (*http.Response, string, error) {
		req, err := http.NewRequest(http.MethodGet, "https://"+addrs[0]+path, nil)
		if err != nil {
			return nil, "", err
		}
		req.Host = "api.example.com"
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res, string(text), err
	}
	eventually(t, "NGINX answers", func() error { _, _, err := ask("/v1/health", ""); return err })
	key, _ := s.newKey(t, "streams:read")
	for path, want := range map[string]struct {
		key    string
		status int
	}{"/v1/streams": {"", 401}, "/v1/streams?limit=1": {key, 200}, "/v1/nothing": {key, 403}} {
		res, text, err := ask(path, want.key, "X-Forwarded-For", "203.0.113.9")
		if err != nil || res.StatusCode != want.status || res.Header.Get("X-Request-Id") == "" {
			t.Fatalf("%s: %v, %v, %s", path, res, err, text)
		}
		log := regexp.MustCompile(`"GET ` + regexp.QuoteMeta(strings.SplitN(path, "?", 2)[0]) + `" ` + fmt.Sprint(want.status) + ` [0-9.]+ ` + regexp.QuoteMeta(res.Header.Get("X-Request-Id")))
		eventually(t, "NGINX's log has the request", func() error {
			lines, err := os.ReadFile(filepath.Join(dir, "api.log"))
			if err == nil && !log.Match(lines) {
				err = fmt.Errorf("%s is not in %s", log, lines)
			}
			return err
		})
	}
}
