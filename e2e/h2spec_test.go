package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
	"golang.org/x/sync/errgroup"
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
// returns what failed; timeout is how long a case waits for an answer.
func h2failures(t testing.TB, addr string, timeout time.Duration, cases map[string]*spec.TestCase) map[string]error {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Host: host, Port: port, Path: "/v1/harsh/open", Timeout: timeout, MaxHeaderLen: 4000, Strict: true}
	var mu sync.Mutex
	failures := map[string]error{}
	var g errgroup.Group
	g.SetLimit(8)
	for name, tested := range cases {
		g.Go(func() error {
			conn, err := spec.Dial(c)
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := tested.Run(c, conn); err != nil && !errors.Is(err, spec.ErrSkipped) {
				mu.Lock()
				defer mu.Unlock()
				failures[name] = err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
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
	envoy := running(t, exec.Command(need(t, "SLUICE_ENVOY"), "--config-path", file, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"))
	t.Cleanup(envoy.Kill)
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
	ours := h2failures(t, s.front(), 2*time.Second, cases)
	plain := h2failures(t, plainEnvoy(t, p.Listener.Addr().String()), 2*time.Second, cases)
	// Where the plain Envoy did better, answers may have come too late on a busy
	// machine: those cases run again, with time.
	suspect := maps.Clone(cases)
	maps.DeleteFunc(suspect, func(name string, _ *spec.TestCase) bool { return ours[name] == nil || plain[name] != nil })
	fresh := h2failures(t, s.front(), 20*time.Second, suspect)
	for name, err := range fresh {
		t.Errorf("%s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	t.Logf("%d cases: %d fail at the edge, %d at the plain Envoy, %d at the edge alone", len(cases), len(ours), len(plain), len(fresh))
}
