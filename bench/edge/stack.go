package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"sluice.dev/sluice/bench/load"
)

// bed is everything that runs during the measurement.
type bed struct {
	*load.Stack
	started  []*exec.Cmd // the Envoys beside the stack
	plain    *subject
	edge     *subject
	upstream string // its address
}

const body = 1024 // bytes of the upstream's answer

// start brings up the upstream, a plain Envoy and a whole local stack whose
// edge proxies to the same upstream.
func start() (*bed, error) {
	stack, err := load.NewStack(map[string]string{"SLUICE_EDGE_CONCURRENCY": "1"})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack}
	if err := b.up(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *bed) up() error {
	addrs, err := load.FreeAddrs(2)
	if err != nil {
		return err
	}
	upstream, plain := addrs[0], addrs[1]
	b.upstream = upstream
	up, err := b.envoy("upstream", upstreamConfig(upstream))
	if err != nil {
		return err
	}
	pid, err := b.envoy("plain", plainConfig(plain, upstream))
	if err != nil {
		return err
	}
	b.plain = &subject{name: "plain Envoy", pid: pid, request: load.Request{Addr: plain, Path: "/bench"}}
	if err := b.stack(upstream); err != nil {
		return err
	}
	if err := errors.Join(waitFor(b.plain.request), waitFor(b.edge.request)); err != nil {
		return err
	}
	return errors.Join(pin(b.plain.pid, 0), pin(b.edge.pid, 0), pin(up, 1), pin(os.Getpid(), 1))
}

// stack runs `sluice up` and routes /v1/bench to the upstream.
func (b *bed) stack(upstream string) error {
	if err := b.Up(context.Background()); err != nil {
		return err
	}
	if err := b.route(upstream); err != nil {
		return err
	}
	pid, err := childNamed(b.PID(), "envoy")
	if err != nil {
		return err
	}
	b.edge = &subject{name: "edge: key, scope, limit, identity, headers", pid: pid,
		request: load.Request{Addr: b.Env["SLUICE_GATEWAY_ADDR"], Path: "/v1/bench", Headers: []string{"Authorization: Bearer " + b.Dev["SLUICE_API_KEY"]}}}
	return nil
}

// route adds the bench's product and route to the stack's configuration.
func (b *bed) route(upstream string) error {
	doc, err := os.ReadFile("deploy/sluice.yaml")
	if err != nil {
		return err
	}
	text := strings.Replace(string(doc), "\nproducts:\n", "\nproducts:\n  - {name: bench, upstreams: [{address: \""+upstream+"\"}]}\n", 1)
	text = strings.Replace(text, "\nroutes:\n", "\nroutes:\n  - {name: bench, methods: [GET], path: /v1/bench, auth: [key], scope: streams:read, product: bench}\n", 1)
	text = strings.Replace(text, "per_minute: 1000000", "per_minute: 1000000000", 1)
	file := filepath.Join(b.Dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if out, err := b.Command(context.Background(), b.Dev, "apply", "-f", file).CombinedOutput(); err != nil {
		return fmt.Errorf("sluice apply: %w: %s", err, out)
	}
	return nil
}

// envoy runs an Envoy with one worker and returns its process id.
func (b *bed) envoy(name, config string) (int, error) {
	file := filepath.Join(b.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Getenv("SLUICE_ENVOY"), "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "error")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	b.started = append(b.started, cmd)
	return cmd.Process.Pid, nil
}

// wasm is the folder with the filters' programs.
func (b *bed) wasm() string { return os.Getenv("SLUICE_WASM_DIR") }

func (b *bed) stop() {
	for _, cmd := range b.started {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	b.Stop()
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
	return hcm(addr, "upstream", `{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: "`+strings.Repeat("x", body)+`"}}}`, "")
}

func plainConfig(addr, upstream string) string {
	host, port, _ := net.SplitHostPort(upstream)
	return hcm(addr, "plain", `{match: {prefix: /}, route: {cluster: u}}`, fmt.Sprintf(
		`{name: u, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: u, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}}`, host, port))
}

func waitFor(r load.Request) error {
	return load.Until(func() error {
		req, err := http.NewRequest(http.MethodGet, "http://"+r.Addr+r.Path, nil)
		if err != nil {
			return err
		}
		for _, h := range r.Headers {
			k, v, _ := strings.Cut(h, ": ")
			req.Header.Set(k, v)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if res.StatusCode != 200 || len(b) != body {
			return fmt.Errorf("%s answers %d with %d bytes", r.Path, res.StatusCode, len(b))
		}
		return err
	})
}

// pin puts every thread of a process on one core.
func pin(pid, core int) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	mask := uint64(1) << core
	for _, t := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(t))
		if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), 8, uintptr(unsafe.Pointer(&mask))); e != 0 && e != syscall.ESRCH {
			err = errors.Join(err, fmt.Errorf("pin %d to core %d: %w", tid, core, e))
		}
	}
	return err
}

// cpuTime is what a process has used so far, to the nanosecond: its CPU clock.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("CPU time of %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// childNamed finds a process below pid, at any depth, whose program has a name that begins so.
func childNamed(pid int, name string) (int, error) {
	parents := map[int]int{}
	names := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		id, _ := strconv.Atoi(strings.Split(d, "/")[2])
		head, rest, _ := strings.Cut(string(b), ") ")
		_, names[id], _ = strings.Cut(head, "(")
		if f := strings.Fields(rest); len(f) > 1 {
			parents[id], _ = strconv.Atoi(f[1])
		}
	}
	for id, n := range names {
		for p := id; strings.HasPrefix(n, name) && p > 1; p = parents[p] {
			if p == pid {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", pid, name)
}
