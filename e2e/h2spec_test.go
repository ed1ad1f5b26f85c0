package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// h2cases are the cases of h2spec, the strict ones too, by name.
func h2cases() map[string]*spec.TestCase {
	all := map[string]*spec.TestCase{}
	var walk func(g *spec.TestGroup)
	walk = func(g *spec.TestGroup) {
		for i, c := range slices.Concat(g.Tests, g.StrictTests) {
			all[fmt.Sprintf("%s/%d %s", g.ID(), i+1, c.Desc)] = c
		}
		for _, inner := range g.Groups {
			walk(inner)
		}
	}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		walk(g)
	}
	return all
}

// h2failures runs cases against the HTTP/2 server at addr, some at once, and
// returns what failed. A case that fails runs once more, alone: an answer may
// have come too late on a busy machine.
func h2failures(t testing.TB, addr string, cases map[string]*spec.TestCase) map[string]error {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Host: host, Port: port, Path: "/v1/harsh/open", Timeout: 5 * time.Second, MaxHeaderLen: 4000, Strict: true}
	run := func(name string) error {
		conn, err := spec.Dial(c)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := cases[name].Run(c, conn); err != spec.ErrSkipped { //nolint:errorlint // it is never wrapped
			return err
		}
		return nil
	}
	names, failed := make(chan string), make(chan string, len(cases))
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for name := range names {
				if run(name) != nil {
					failed <- name
				}
			}
		})
	}
	for name := range cases {
		names <- name
	}
	close(names)
	g.Wait()
	close(failed)
	failures := map[string]error{}
	for name := range failed {
		if err := run(name); err != nil {
			failures[name] = err
		}
	}
	return failures
}

// plainEnvoy is the edge's Envoy with no filter but the router, before the same
// product. It listens on addr.
func plainEnvoy(t testing.TB, product string) (addr string) {
	t.Helper()
	addr = freeAddrs(t, 1)[0]
	address := func(a string) string {
		host, port, _ := net.SplitHostPort(a)
		return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
	}
	file := filepath.Join(t.TempDir(), "plain.yaml")
	text := fmt.Sprintf(`static_resources:
  listeners:
  - address: %s
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: plain
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: product}}]}]}
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
  clusters:
  - name: product
    load_assignment: {cluster_name: product, endpoints: [{lb_endpoints: [{endpoint: {address: %s}}]}]}
`, address(addr), address(product))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(need(t, "SLUICE_ENVOY"), "--config-path", file, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "the plain Envoy answers", func() error {
		r, err := try(http.MethodGet, "http://"+addr+"/v1/harsh/open", "", nil)
		return unless(err, r, http.StatusOK)
	})
	return addr
}

// On HTTP/2 the edge does nothing wrong that the same Envoy without our filters
// and settings does right.
func TestH2Spec(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	cases := h2cases()
	if len(cases) < 140 {
		t.Fatalf("only %d cases", len(cases))
	}
	finish := s.bystander(t)
	defer finish()
	ours := h2failures(t, s.front(), cases)
	plain := h2failures(t, plainEnvoy(t, p.Listener.Addr().String()), cases)
	both := 0
	for name, err := range ours {
		if plain[name] != nil {
			both++
			continue
		}
		t.Errorf("%s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	t.Logf("%d cases: %d fail at the edge, %d of them at the plain Envoy too, where %d fail", len(cases), len(ours), both, len(plain))
}
