package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/dev/supervise"
	"sluice.dev/sluice/platform/process/bindcheck"
)

func upCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "run the whole platform on this machine", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runUp(c.Context(), env, c.OutOrStdout()) },
	}
}

// maxEdges keeps the ports of edges, which are 100 apart, clear of each other.
const maxEdges = 8

// local is a stack being brought up.
type local struct {
	env   environment
	state string
	self  string                       // this binary
	set   map[string]string            // what the processes are given beyond the environment
	own   map[string]map[string]string // what one process is given in its place
	edges []edgePorts
	// apiKey of the seeded account, for the probe of the edges.
	apiKey string
	probe  *http.Client // of the edges
}

// edgePorts is where one edge of the stack listens.
type edgePorts struct{ name, gateway, runtime, admin, agent string }

// runUp brings the stack up and keeps it up until ctx ends. Whatever is wrong is
// found before anything is started, where that is possible.
func runUp(ctx context.Context, env environment, out io.Writer) error {
	l, err := prepare(ctx, env)
	if err != nil {
		return err
	}
	began := time.Now()
	return supervise.Run(ctx, supervise.Config{
		LogDir: l.file("logs"),
		Output: out,
		Color:  isTerminal(out),
		OnReady: func(context.Context) error {
			_, err := fmt.Fprintf(out, "ready in %.1fs: gateway %s://%s, runtime %s://%s, admin http://%s; keys in %s\n", time.Since(began).Seconds(),
				env.scheme(), l.edges[0].gateway, env.scheme(), l.edges[0].runtime, env.get("SLUICE_ADMIN_ADDR"), l.file("dev.env"))
			if l.set["SLUICE_MEDIA_ENGINE"] == programs.Off {
				fmt.Fprintln(out, "without a media engine: streams exist, but nobody can publish to them (`make tools` builds one)")
			}
			return err
		},
	}, l.parts())
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func prepare(ctx context.Context, env environment) (*local, error) {
	l := &local{env: env, set: map[string]string{}, own: map[string]map[string]string{}}
	var err error
	if l.state, err = filepath.Abs(env.get("SLUICE_STATE_DIR")); err != nil {
		return nil, err
	}
	if l.self, err = os.Executable(); err != nil {
		return nil, err
	}
	l.set["SLUICE_STATE_DIR"] = l.state
	if _, chosen := env.lookup("SLUICE_ANNOUNCE"); !chosen {
		l.set["SLUICE_ANNOUNCE"] = "0s" // all of it stops together
	}
	l.env = env.with(l.set)
	if err := l.placeEdges(); err != nil {
		return nil, err
	}
	files, err := env.clientFiles()
	if err != nil {
		return nil, err
	}
	l.probe = &http.Client{Transport: &http.Transport{TLSClientConfig: sameCertificate(files), ForceAttemptHTTP2: true}}
	if err := l.checkAddresses(); err != nil {
		return nil, err
	}
	if l.set["SLUICE_ENVOY"], err = l.env.envoy(); err != nil {
		return nil, err
	}
	if _, err := l.env.wasmParent(); err != nil {
		return nil, err
	}
	for _, p := range []programs.Program{programs.Engine, programs.FFmpeg} {
		if l.set[p.Variable], err = l.env.program(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := l.placeEngine(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.state, 0o755); err != nil {
		return nil, err
	}
	if err := l.loadSecrets(); err != nil {
		return nil, err
	}
	return l, l.env.guarded([]string{l.env.get("SLUICE_XDS_ADDR")})
}

func (l *local) file(name string) string { return filepath.Join(l.state, name) }

// placeEdges gives each edge its ports: those of the first plus 100, 200, ….
func (l *local) placeEdges() error {
	n, err := l.env.number("SLUICE_EDGES", 1, maxEdges)
	if err != nil {
		return err
	}
	for i := range n {
		e := edgePorts{name: "edge-" + strconv.Itoa(i+1)}
		for variable, addr := range map[string]*string{
			"SLUICE_GATEWAY_ADDR": &e.gateway, "SLUICE_RUNTIME_ADDR": &e.runtime, "SLUICE_ENVOY_ADMIN_ADDR": &e.admin, "SLUICE_EDGE_METRICS_ADDR": &e.agent,
		} {
			if *addr, err = shift(variable, l.env.get(variable), 100*i); err != nil {
				return err
			}
		}
		l.edges = append(l.edges, e)
	}
	return nil
}

// shift moves the port of addr, the value of variable.
func shift(variable, addr string, by int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%s is %q: expected host:port", variable, addr)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || int(n)+by > 65535 {
		return "", fmt.Errorf("%s is %q: expected a port from 1 to %d", variable, addr, 65535-by)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(n)+by)), nil
}

// checkAddresses makes sure that everything can listen before anything starts.
func (l *local) checkAddresses() error {
	for _, v := range []string{"SLUICE_ADMIN_ADDR", "SLUICE_XDS_ADDR", "SLUICE_API_LISTEN", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN", "SLUICE_WORKER_LISTEN"} {
		if err := bindcheck.Free(l.env.get(v), v); err != nil {
			return err
		}
	}
	for _, e := range l.edges {
		for v, addr := range map[string]string{"SLUICE_GATEWAY_ADDR": e.gateway, "SLUICE_RUNTIME_ADDR": e.runtime, "SLUICE_ENVOY_ADMIN_ADDR": e.admin, "SLUICE_EDGE_METRICS_ADDR": e.agent} {
			if err := bindcheck.Free(addr, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts are the processes in the order in which they start.
func (l *local) parts() []supervise.Part {
	parts := []supervise.Part{
		l.postgres(),
		supervise.Step("migrate", l.migrate),
		supervise.Step("seed", l.seed),
		supervise.Step("users", l.part),
		l.process("controlplane", "SLUICE_ADMIN_ADDR", "/health"),
		l.process("worker", "SLUICE_WORKER_LISTEN", "/health"),
		l.process("runtime", "SLUICE_RUNTIME_LISTEN", "/openapi.json"),
		l.process("media", "SLUICE_MEDIA_LISTEN", "/health"),
	}
	if l.set["SLUICE_MEDIA_ENGINE"] != programs.Off {
		parts = append(parts, l.process("engine", "SLUICE_ENGINE_API_LISTEN", "/v3/paths/list"))
	}
	for _, e := range l.edges {
		parts = append(parts, l.edge(e))
	}
	return parts
}

// postgres is the private server, unless there is another already.
func (l *local) postgres() supervise.Part {
	return supervise.Part{Name: "postgres", Start: func(ctx context.Context, log io.Writer) (supervise.Running, error) {
		if url := l.env.get("SLUICE_DATABASE_URL"); url != "" && l.set["SLUICE_DATABASE_URL"] == "" {
			return nil, nil
		}
		s, err := pgserver.Start(ctx, pgserver.Config{Dir: l.file("postgres"), Database: "sluice", Path: os.Getenv("PATH"), Log: log})
		if err != nil {
			return nil, err
		}
		l.set["SLUICE_DATABASE_URL"] = s.URL()
		return s, nil
	}}
}

// process is this binary with another command. It is ready when the address in
// variable answers a GET of path with 200; without a variable it is ready at once.
func (l *local) process(command, variable, path string) supervise.Part {
	return supervise.Part{Name: command, Start: l.start(command, nil), Ready: func(ctx context.Context) error {
		return healthy(ctx, "http://"+l.env.get(variable)+path, "", http.DefaultClient)
	}}
}

// edge is this binary as the supervisor of one Envoy.
func (l *local) edge(e edgePorts) supervise.Part {
	return supervise.Part{
		Name: e.name,
		Start: l.start("edge", map[string]string{
			"SLUICE_EDGE_NAME": e.name, "SLUICE_GATEWAY_ADDR": e.gateway, "SLUICE_RUNTIME_ADDR": e.runtime, "SLUICE_ENVOY_ADMIN_ADDR": e.admin,
			"SLUICE_EDGE_METRICS_ADDR": e.agent, "SLUICE_PUBLIC_URL": l.env.publicURL(),
		}),
		Ready: func(ctx context.Context) error { return l.serves(ctx, e) },
	}
}

func (l *local) start(command string, extra map[string]string) func(context.Context, io.Writer) (supervise.Running, error) {
	return func(ctx context.Context, log io.Writer) (supervise.Running, error) {
		return supervise.Command{Argv: []string{l.self, command}, Env: l.environ(os.Environ(), command, extra)}.Start(ctx, log)
	}
}

// environ is what a process is given: of this process's environment, with the
// stack's settings in it, the variables that it reads.
func (l *local) environ(inherited []string, process string, extra map[string]string) (env []string) {
	values := map[string]string{}
	for _, kv := range inherited {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	for _, m := range []map[string]string{l.set, l.own[process], extra} {
		maps.Copy(values, m)
	}
	for name, value := range values {
		if gets(process, name) {
			env = append(env, name+"="+value)
		}
	}
	return env
}
