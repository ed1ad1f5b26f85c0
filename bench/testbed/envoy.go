package testbed

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/e2e/harness"
)

// BodySize is how many bytes the upstream answers.
const BodySize = 1024

// Envoy runs an Envoy with one worker until Close and returns its process id; name
// is that of its configuration file. Under is a program that runs it, with its
// arguments; none: it runs by itself.
func (b *Bed) Envoy(name, config string, under ...string) (int, error) {
	file := filepath.Join(b.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return 0, err
	}
	argv := append(under, os.Getenv("SLUICE_ENVOY"), "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "error")
	return b.Launch(exec.Command(argv[0], argv[1:]...))
}

// Launch starts a program that ends with Close, or with the bench, and returns its
// process id.
func (b *Bed) Launch(cmd *exec.Cmd) (int, error) {
	cmd.Stderr = os.Stderr
	p, err := harness.Start(cmd)
	if err != nil {
		return 0, err
	}
	b.started = append(b.started, p)
	return p.PID(), nil
}

func hcm(addr, name, route, clusters string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf(`static_resources:
  listeners:
  - address: {socket_address: {address: %s, port_value: %s}}
    filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: %s, route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [%s]}]},
      http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]
  clusters: [%s]
`, host, port, name, route, clusters)
}

func upstreamConfig(addr string) string {
	return hcm(addr, "upstream", `{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: "`+strings.Repeat("x", BodySize)+`"}}}`, "")
}

// PlainConfig is the configuration of an Envoy at addr that proxies to upstream and
// does nothing else.
func PlainConfig(addr, upstream string) string {
	host, port, _ := net.SplitHostPort(upstream)
	return hcm(addr, "plain", `{match: {prefix: /}, route: {cluster: u}}`, fmt.Sprintf(
		`{name: u, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: u, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}}`, host, port))
}
