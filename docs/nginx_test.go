package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Machines that run the tests have no NGINX (`make clients` fetches one and runs this), so
// the page's configuration is read here:
// its blocks close, its directives end, and each that the page explains is in it.
func TestTheConfigurationOfNGINXIsWhole(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("behind-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```nginx\n")
	conf, table, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no configuration")
	}
	depth, places := 0, map[string]int{}
	for n, line := range strings.Split(strings.TrimSpace(conf), "\n") {
		line = strings.TrimSpace(line)
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		if line != "" && !strings.HasSuffix(line, ";") && !strings.HasSuffix(line, "{") && !strings.HasSuffix(line, "}") || depth < 0 {
			t.Errorf("line %d of the configuration does not end: %s", n+1, line)
		}
		places[strings.TrimSuffix(strings.Fields(line + " -")[0], ";")] = depth
	}
	if depth != 0 {
		t.Error("a block does not close")
	}
	const http, server, location = 1, 2, 3
	for name, at := range map[string]int{"keepalive": server, "log_format": http, "client_max_body_size": server, "proxy_pass": location, "proxy_http_version": location,
		"proxy_buffering": location, "proxy_request_buffering": location, "proxy_read_timeout": location, "proxy_next_upstream": location, "ssl_certificate": server} {
		if places[name] != at {
			t.Errorf("%s stands in %d blocks, want %d", name, places[name], at)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)").FindAllStringSubmatch(table, -1) {
		if m[1] != "line" && !strings.Contains(conf, m[1]) && !strings.Contains(m[1], "X-") {
			t.Errorf("the page explains %s, which the configuration lacks", m[1])
		}
	}
}
