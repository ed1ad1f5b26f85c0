package resources

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// running starts an Envoy on config and returns the address of its gateway.
func running(t *testing.T, config string, workers ...int) string {
	t.Helper()
	addr, _ := started(t, config, os.Stdout, append(workers, 1)[0])
	return addr
}

// started is running, with where Envoy writes its access log, and the process. Its
// other log, with what filters print, is in the file log beside its configuration.
func started(t *testing.T, config string, out io.Writer, workers int) (addr string, cmd *exec.Cmd) {
	t.Helper()
	admin := filepath.Join(filepath.Dir(config), "admin")
	cmd = exec.Command(os.Getenv("SLUICE_ENVOY"), "--config-path", config, "--admin-address-path", admin, "--concurrency", fmt.Sprint(workers), "--log-level", "error",
		"--component-log-level", "wasm:info", "--disable-hot-restart")
	log, err := os.Create(filepath.Join(filepath.Dir(config), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(config), out, io.MultiWriter(os.Stderr, log)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run `make test`, which sets SLUICE_ENVOY", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if addr := gatewayAddress(admin); addr != "" {
			return addr, cmd
		}
		select { // Envoy gives no signal of its own
		case <-ctx.Done():
			t.Fatal("Envoy has not opened its listeners")
		case <-tick.C:
		}
	}
}

// gatewayAddress asks Envoy's admin endpoint, whose address is in file, where
// the gateway listens; "" when it does not yet.
func gatewayAddress(file string) string {
	admin, err := os.ReadFile(file)
	if err != nil || len(admin) == 0 {
		return ""
	}
	res, err := http.Get("http://" + string(admin) + "/listeners")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		addr, ok := strings.CutPrefix(lines.Text(), "gateway::")
		if conn, err := net.Dial("tcp", addr); ok && err == nil {
			conn.Close() // Envoy lists a listener a moment before it accepts
			return addr
		}
	}
	return ""
}

// Whatever Envoy answers by itself looks like any other answer of ours.
func TestEnvoysOwnAnswersCarryTheEnvelope(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses, DocsBase: "http://gw"})
	addr := running(t, static(t, s, Addresses{Gateway: "127.0.0.1:0"}))
	cases := map[string]struct {
		raw    string
		status int
		code   string
	}{
		"not HTTP":            {"GIBBERISH\r\n\r\n", 400, "invalid_request"},
		"no host":             {"GET /v1/streams HTTP/1.1\r\n\r\n", 400, "invalid_request"},
		"underscore in name":  {"GET /health HTTP/1.1\r\nHost: a\r\nX_Sluice_Identity: v1\r\n\r\n", 400, "invalid_request"},
		"escaped slash":       {"GET /v1%2fstreams HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
		"two lengths":         {"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"},
		"HTTP/1.0":            {"GET /health HTTP/1.0\r\nHost: a\r\n\r\n", 426, "invalid_request"},
		"headers too large":   {"GET /health HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", 431, "headers_too_large"},
		"upgrade":             {"GET /health HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", 403, "upgrade_refused"},
		"product is down":     {"GET /origin-health HTTP/1.1\r\nHost: a\r\n\r\n", 503, "service_unavailable"},
		"nothing there":       {"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found"},
		"unmapped":            {"GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 403, "ROUTE_NOT_MAPPED"},
		"unmapped method":     {"PUT /v1/streams HTTP/1.1\r\nHost: a\r\n\r\n", 403, "ROUTE_NOT_MAPPED"},
		"dots lead elsewhere": {"GET /health/../v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n", 403, "ROUTE_NOT_MAPPED"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, body := exchange(t, addr, c.raw)
			if res.StatusCode != c.status || body.Error.Code != c.code {
				t.Errorf("got %d %+v, want %d %s", res.StatusCode, body.Error, c.status, c.code)
			}
			checkHeaders(t, res, body.Error.RequestID)
			if want := "http://gw/docs/errors/" + c.code; body.Error.DocumentationURL != want {
				t.Errorf("documentation_url is %q", body.Error.DocumentationURL)
			}
			if got := res.Header.Get("Retry-After"); (c.status == 503) != (got != "") {
				t.Errorf("Retry-After is %q", got)
			}
		})
	}
}

// People who open an address that no route takes see a page; clients of the API get the
// envelope there, and browsers get it everywhere else.
func TestPagesForBrowsers(t *testing.T) {
	t.Parallel()
	own := defaults(t)
	own.Routes = slices.DeleteFunc(own.Routes, func(r config.Route) bool { return strings.HasPrefix(r.Path, "/docs") })
	for docs, d := range map[bool]config.Document{true: defaults(t), false: own} {
		addr := running(t, static(t, build(t, d, Options{Addresses: addresses, DocsBase: "http://gw"}), Addresses{Gateway: "127.0.0.1:0"}))
		for _, c := range []struct {
			path, accept string
			status       int
			page         bool
		}{
			{"/", "text/html,application/xhtml+xml,*/*;q=0.8", 404, true}, {"/nothing", "text/html", 404, true}, {"/v1/nothing", "text/html", 403, true},
			{"/", "*/*", 404, false}, {"/", "application/json", 404, false}, {"/v1/nothing", "", 403, false}, {"/v1/users", "text/html", 401, false},
		} {
			accept := "Accept: " + c.accept + "\r\n"
			if c.accept == "" {
				accept = ""
			}
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", c.path, accept)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			kind, policy := res.Header.Get("Content-Type"), res.Header.Get("Content-Security-Policy")
			if err != nil || res.StatusCode != c.status || (kind == "text/html; charset=utf-8") != c.page || c.page == (kind == "application/json") {
				t.Errorf("%s %s: %d %s, %v", c.path, c.accept, res.StatusCode, kind, err)
				continue
			}
			id := res.Header.Get("X-Request-Id")
			if id == "" || !strings.Contains(string(body), id) {
				t.Errorf("%s %s: the body does not name request %q: %s", c.path, c.accept, id, body)
			}
			if c.page && (strings.Contains(string(body), `href="/docs"`) != docs || strings.Contains(string(body), "%") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "%")) {
				t.Errorf("%s: %s\n%s", c.path, policy, body)
			}
		}
	}
}

type envelope struct {
	Error struct {
		Code             string `json:"code"`
		Message          string `json:"message"`
		RequestID        string `json:"request_id"`
		DocumentationURL string `json:"documentation_url"`
	} `json:"error"`
}

func exchange(t *testing.T, addr, raw string) (*http.Response, envelope) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, raw)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var e envelope
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		t.Fatalf("%d: the body is not the envelope: %v", res.StatusCode, err)
	}
	return res, e
}

func checkHeaders(t *testing.T, res *http.Response, id string) {
	t.Helper()
	for _, h := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Window", "X-Request-Id"} {
		if v := res.Header.Values(h); len(v) != 1 || v[0] == "" || v[0] == "-" {
			t.Errorf("%s is %q", h, v)
		}
	}
	if got := res.Header.Get("X-Request-Id"); got != id || len(id) != 36 {
		t.Errorf("request id: header %q, body %q", got, id)
	}
	for h := range res.Header {
		if strings.HasPrefix(h, "X-Envoy") || h == "Server" || h == "Via" {
			t.Errorf("the answer shows %s", h)
		}
	}
}
