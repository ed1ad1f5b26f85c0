package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/bench/chaos/plan"
	"sluice.dev/sluice/e2e/harness"
)

// settle decides what every process is given.
func (f *Fleet) settle() error {
	secret := func() string {
		var b [32]byte
		rand.Read(b[:])
		return hex.EncodeToString(b[:])
	}
	scheme := "http"
	f.shared = map[string]string{
		"SLUICE_IDENTITY_SECRETS": secret(), "SLUICE_SECRETS_KEY": secret(), "SLUICE_FEED_TOKEN": secret(),
		"SLUICE_MEDIA_ENGINE": "off", "SLUICE_FFMPEG": cmp.Or(os.Getenv("SLUICE_FFMPEG"), "off"), "SLUICE_SPEECH": "off", "SLUICE_VOICE": "off", "SLUICE_TESSERACT": "off",
		"SLUICE_ENVOY": os.Getenv("SLUICE_ENVOY"), "SLUICE_WASM_DIR": os.Getenv("SLUICE_WASM_DIR"),
		"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32", "SLUICE_EDGE_CONCURRENCY": "1", "SLUICE_STATE_DIR": filepath.Join(f.Dir, "state"),
		"SLUICE_GATEWAY_ADDR": f.addrs["gateway-1"], "SLUICE_RUNTIME_ADDR": f.addrs["chat-1"],
	}
	if f.TLS {
		scheme = "https"
		f.shared["SLUICE_XDS_TLS_DIR"] = f.certs()
		f.shared["SLUICE_TLS_CERT"], f.shared["SLUICE_TLS_KEY"] = filepath.Join(f.certs(), "gateway.pem"), filepath.Join(f.certs(), "gateway.key")
	}
	f.gateway = scheme + "://"
	for i := range edges {
		n := strconv.Itoa(i + 1)
		f.Edges = append(f.Edges, Edge{Name: "edge-" + n, Gateway: f.gateway + f.must("clients", "edge-"+n, f.addrs["gateway-"+n]),
			Runtime: f.gateway + f.must("chat clients", "edge-"+n, f.addrs["chat-"+n])})
	}
	f.shared["SLUICE_PUBLIC_URL"], f.shared["SLUICE_RUNTIME_PUBLIC_URL"] = f.Edges[0].Gateway, f.Edges[0].Runtime
	for i := range controlPlanes {
		n := strconv.Itoa(i + 1)
		f.Admins = append(f.Admins, "http://"+f.must("operators", "controlplane-"+n, f.addrs["admin-"+n]))
	}
	hooks, err := f.wire("worker", "receiver", f.Receiver)
	f.Hooks = "http://" + hooks
	return err
}

// parts are the processes in the order in which they start, with their wires.
func (f *Fleet) parts() (all []*process) {
	add := func(name, command string, env map[string]string) {
		vars := f.environ(env)
		all = append(all, &process{name: name, command: func() *exec.Cmd { return harness.Command(vars, command) }})
	}
	for i := range controlPlanes {
		n := strconv.Itoa(i + 1)
		add("controlplane-"+n, "controlplane", f.onDatabase("controlplane-"+n, map[string]string{
			"SLUICE_ADMIN_ADDR": f.addrs["admin-"+n], "SLUICE_XDS_ADDR": f.addrs["xds-"+n], "SLUICE_API_LISTEN": f.addrs["api-"+n],
			"SLUICE_GATEWAY_INTERNAL_URL": f.viaGateway("controlplane-" + n)}))
	}
	for i := range workers {
		n := strconv.Itoa(i + 1)
		add("worker-"+n, "worker", f.onDatabase("worker-"+n, map[string]string{
			"SLUICE_WORKER_LISTEN": f.addrs["worker-"+n], "SLUICE_MEDIA_UPSTREAM": f.must("worker-"+n, "media", f.addrs["media"])}))
	}
	add("runtime", "runtime", f.onDatabase("runtime", map[string]string{
		"SLUICE_RUNTIME_LISTEN": f.addrs["runtime"], "SLUICE_GATEWAY_INTERNAL_URL": f.viaGateway("runtime")}))
	add("media", "media", f.onDatabase("media", map[string]string{"SLUICE_MEDIA_LISTEN": f.addrs["media"]}))
	for i, e := range f.Edges {
		n := strconv.Itoa(i + 1)
		var replicas []string
		for j := range controlPlanes {
			m := strconv.Itoa(j + 1)
			replicas = append(replicas, f.must(e.Name, "controlplane-"+m, f.addrs["xds-"+m]))
		}
		add(e.Name, "edge", map[string]string{
			"SLUICE_EDGE_NAME": e.Name, "SLUICE_XDS_ADDR": strings.Join(replicas, ","), "SLUICE_GATEWAY_ADDR": f.addrs["gateway-"+n], "SLUICE_RUNTIME_ADDR": f.addrs["chat-"+n],
			"SLUICE_ENVOY_ADMIN_ADDR": f.addrs["envoy-"+n], "SLUICE_EDGE_METRICS_ADDR": f.addrs["agent-"+n], "SLUICE_STATE_DIR": f.disk(e.Name)})
	}
	return all
}

// viaGateway is where a service calls the gateway for who called it: the first
// edge, over a wire of its own.
func (f *Fleet) viaGateway(name string) string {
	return f.gateway + f.must(name, f.Edges[0].Name, f.addrs["gateway-1"])
}

// onDatabase adds the address of the database, over a wire of its own to each server.
func (f *Fleet) onDatabase(name string, env map[string]string) map[string]string {
	var wires []string
	for i, m := range f.database.both {
		wires = append(wires, f.must(name, []string{"postgres", "standby"}[i], m.addr()))
	}
	url, err := f.database.through(wires...)
	if err != nil {
		panic(err) // of a URL that has been used already
	}
	env["SLUICE_DATABASE_URL"] = url
	return env
}

// must lays a wire on a port that was free a moment ago.
func (f *Fleet) must(from, to, addr string) string {
	a, err := f.wire(from, to, addr)
	if err != nil {
		panic(err)
	}
	return a
}

// Targets are the parts that can be broken.
func (f *Fleet) Targets() plan.Targets {
	t := plan.Targets{Processes: f.order, Wires: f.wires.names, Certs: f.TLS, Standby: f.Standby}
	for _, e := range f.Edges {
		t.Edges = append(t.Edges, e.Name)
	}
	if f.Fixed == nil {
		t.Clocks = append([]string{"postgres"}, f.order...)
	}
	if f.Disk {
		t.Disks = []string{f.Edges[edges-1].Name}
	}
	return t
}

// Secret is what edges sign identity headers with, in hexadecimal digits.
func (f *Fleet) Secret() string { return f.shared["SLUICE_IDENTITY_SECRETS"] }

// Client is one for the fleet's edges and admin APIs.
func (f *Fleet) Client() (*http.Client, error) {
	t := &http.Transport{MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true}
	if f.TLS {
		ca, err := os.ReadFile(filepath.Join(f.certs(), "ca.pem"))
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{Transport: t, Timeout: 10 * time.Second}, nil
}

// Admin calls the admin API of a replica. It returns the answer's status and ETag.
func (f *Fleet) Admin(ctx context.Context, c *http.Client, replica int, method, path, match string, in, out any) (status int, etag string, err error) {
	var headers []string
	if match != "" {
		headers = []string{"If-Match", match}
	}
	a, err := harness.Ask(ctx, c, method, f.Admins[replica]+"/admin/v1/"+path, f.Dev["SLUICE_ADMIN_KEY"], in, headers...)
	if err != nil {
		return 0, "", err
	}
	return a.StatusCode, a.Header.Get("ETag"), a.Into(out)
}

// configure lays the wires by which edges and workers reach the services; what
// they end in need not run yet.
func (f *Fleet) configure() {
	f.shared["SLUICE_MEDIA_UPSTREAM"] = f.must("edges", "media", f.addrs["media"])
	f.shared["SLUICE_RUNTIME_UPSTREAM"] = f.must("edges", "runtime", f.addrs["runtime"])
	var replicas []string
	for i := range controlPlanes {
		n := strconv.Itoa(i + 1)
		replicas = append(replicas, f.must("edges", "api-"+n, f.addrs["api-"+n]))
	}
	f.shared["SLUICE_API_UPSTREAM"] = strings.Join(replicas, ",")
}

// await waits until every edge serves.
func (f *Fleet) await(ctx context.Context) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	for _, e := range f.Edges {
		if err := f.Await(ctx, func() error { return serves(ctx, c, e, f.Dev["SLUICE_API_KEY"]) }); err != nil {
			return fmt.Errorf("%s does not serve: %w", e.Name, err)
		}
	}
	return nil
}

func serves(ctx context.Context, c *http.Client, e Edge, key string) error {
	for _, path := range []string{"/v1/streams?limit=1", "/v1/webhooks?limit=1"} {
		a, err := harness.Ask(ctx, c, http.MethodGet, e.Gateway+path, key, nil)
		if err == nil {
			err = a.Into(nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

// Await asks until f succeeds: processes give no signal when they are ready.
func (f *Fleet) Await(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// disk is the state folder of an edge.
func (f *Fleet) disk(edge string) string { return filepath.Join(f.Dir, edge) }

func (f *Fleet) certs() string { return filepath.Join(f.Dir, "certs") }

// Straight are the base URLs of an edge over no wire, for clients that must not share
// the address of others.
func (f *Fleet) Straight(edge int) (gateway, runtime string) {
	n := strconv.Itoa(edge + 1)
	return f.gateway + f.addrs["gateway-"+n], f.gateway + f.addrs["chat-"+n]
}
