package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/dev/supervise"
	"sluice.dev/sluice/platform/process/bindcheck"
)

// maxEdges keeps the ports of edges, which are 100 apart, clear of each other.
const maxEdges = 8

// localStack is a stack being brought up.
type localStack struct {
	env   Environment
	state string
	self  string                       // this binary
	set   map[string]string            // what the processes are given beyond the environment
	own   map[string]map[string]string // what one process is given in its place
	edges []map[string]string          // what each edge is given beyond those
	all   bool                         // false: the profile gateway, which has no product but the API
	// document is applied before anything serves; nil: none.
	document *config.Document
	// sources is the checkout in which a media engine can be built; "": none.
	sources string
	fetch   fetch.Config
	missing []programs.Program // that come up behind the ready stack
	late    lateSettings       // which they add
	// apiKey of the seeded account, for the probe of the edges.
	apiKey string
	probe  *http.Client // of the edges
}

// edgeAddrs are where an edge of the stack listens.
var edgeAddrs = []string{"SLUICE_GATEWAY_ADDR", "SLUICE_RUNTIME_ADDR", "SLUICE_ENVOY_ADMIN_ADDR", "SLUICE_EDGE_METRICS_ADDR"}

// ofProducts are the addresses that a stack with the profile gateway does not have.
var ofProducts = []string{"SLUICE_RUNTIME_ADDR", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN"}

// listens reports whether the stack has the address of a variable.
func (l *localStack) listens(variable string) bool {
	return l.all || !slices.Contains(ofProducts, variable)
}

// UpOptions are what a stack does differently.
type UpOptions struct {
	// Sources is a checkout in which a missing media engine is built. Empty: none.
	Sources string
	// Document, which was expanded and has no fault, is put in force before anything
	// serves. nil: what is in force stays.
	Document *config.Document
}

// RunUp brings the stack up and keeps it up until ctx ends. Whatever is wrong is
// found before anything is started, where that is possible. Envoy and PostgreSQL are
// fetched where they are missing.
func RunUp(ctx context.Context, env Environment, opt UpOptions, out io.Writer) error {
	began, color := time.Now(), isTerminal(out)
	out = &lockedWriter{w: out}
	l, err := prepare(ctx, env, opt, out)
	if err != nil {
		return err
	}
	return supervise.Run(ctx, supervise.Config{
		LogDir: l.file("logs"),
		Output: out,
		Color:  color,
		OnReady: func(context.Context) error {
			_, err := fmt.Fprintf(out, "ready in %.1fs: %s; keys in %s\n", time.Since(began).Seconds(), l.where(), l.file("dev.env"))
			return err
		},
		Behind: func(ctx context.Context, s *supervise.Stack) { l.bringMissing(ctx, s, out) },
	}, l.parts())
}

// where are the addresses that people use.
func (l *localStack) where() string {
	scheme, edge, admin := l.env.scheme(), l.edges[0], l.env.Get("SLUICE_ADMIN_ADDR")
	if l.all {
		return fmt.Sprintf("gateway %s://%s, runtime %s://%s, admin http://%s", scheme, edge["SLUICE_GATEWAY_ADDR"], scheme, edge["SLUICE_RUNTIME_ADDR"], admin)
	}
	return fmt.Sprintf("gateway %s://%s, dashboard and admin http://%s", scheme, edge["SLUICE_GATEWAY_ADDR"], admin)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func prepare(ctx context.Context, env Environment, opt UpOptions, out io.Writer) (*localStack, error) {
	l := &localStack{env: env, sources: opt.Sources, document: opt.Document, fetch: env.Fetcher(out), set: map[string]string{}, own: map[string]map[string]string{}}
	var err error
	if l.all, err = env.hasAll(); err != nil {
		return nil, err
	}
	if l.state, err = filepath.Abs(env.Get("SLUICE_STATE_DIR")); err != nil {
		return nil, err
	}
	if l.self, err = os.Executable(); err != nil {
		return nil, err
	}
	l.set["SLUICE_STATE_DIR"], l.set[profileVariable] = l.state, env.Get(profileVariable)
	if _, chosen := env.Lookup("SLUICE_ANNOUNCE"); !chosen {
		l.set["SLUICE_ANNOUNCE"] = "0s" // all of it stops together
	}
	l.env = env.With(l.set)
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
	if _, err := l.env.wasmDir(); err != nil {
		return nil, err
	}
	if l.all {
		if err := l.findMedia(ctx); err != nil {
			return nil, err
		}
		if err := l.placeEngine(); err != nil {
			return nil, err
		}
	}
	if err := l.requireTools(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.state, 0o755); err != nil {
		return nil, err
	}
	if err := l.loadSecrets(); err != nil {
		return nil, err
	}
	return l, l.env.checkExposure([]string{l.env.Get("SLUICE_XDS_ADDR")})
}

func (l *localStack) file(name string) string { return filepath.Join(l.state, name) }

// placeEdges gives each edge its ports: those of the first plus 100, 200, ….
func (l *localStack) placeEdges() error {
	n, err := l.env.number("SLUICE_EDGES", 1, maxEdges)
	if err != nil {
		return err
	}
	for i := range n {
		e := map[string]string{"SLUICE_EDGE_NAME": "edge-" + strconv.Itoa(i+1), "SLUICE_PUBLIC_URL": l.env.publicURL()}
		for _, variable := range edgeAddrs {
			if e[variable], err = shift(variable, l.env.Get(variable), 100*i); err != nil {
				return err
			}
		}
		if plain := l.env.Get("SLUICE_PLAIN_ADDR"); plain != "" {
			if e["SLUICE_PLAIN_ADDR"], err = shift("SLUICE_PLAIN_ADDR", plain, 100*i); err != nil {
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
func (l *localStack) checkAddresses() error {
	for _, v := range []string{"SLUICE_ADMIN_ADDR", "SLUICE_XDS_ADDR", "SLUICE_API_LISTEN", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN", "SLUICE_WORKER_LISTEN"} {
		if !l.listens(v) {
			continue
		}
		if err := bindcheck.Free(l.env.Get(v), v); err != nil {
			return err
		}
	}
	for _, e := range l.edges {
		for _, v := range edgeAddrs {
			if !l.listens(v) {
				continue
			}
			if err := bindcheck.Free(e[v], v); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts are the processes in the order in which they start.
func (l *localStack) parts() []supervise.Part {
	parts := []supervise.Part{
		l.postgres(),
		supervise.Step("migrate", l.migrate),
		supervise.Step("seed", l.seed),
		supervise.Step("users", l.assignSecrets),
		l.process("controlplane", "SLUICE_ADMIN_ADDR", "/health"),
		l.process("worker", "SLUICE_WORKER_LISTEN", "/health"),
	}
	if l.all {
		parts = append(parts, l.process("runtime", "SLUICE_RUNTIME_LISTEN", "/openapi.json"), l.process("media", "SLUICE_MEDIA_LISTEN", "/health"))
	}
	if l.all && l.set["SLUICE_MEDIA_ENGINE"] != programs.Off {
		parts = append(parts, l.engine())
	}
	for _, e := range l.edges {
		parts = append(parts, supervise.Part{
			Name: e["SLUICE_EDGE_NAME"], Start: l.start("edge", e), Ready: func(ctx context.Context) error { return l.serves(ctx, e) },
		})
	}
	return parts
}

// postgres is the private server, unless there is another already.
func (l *localStack) postgres() supervise.Part {
	return supervise.Part{Name: "postgres", Start: func(ctx context.Context, log io.Writer) (supervise.Running, error) {
		if url := l.env.Get("SLUICE_DATABASE_URL"); url != "" && l.set["SLUICE_DATABASE_URL"] == "" {
			return nil, nil
		}
		s, err := pgserver.Start(ctx, pgserver.Config{Dir: l.file("postgres"), Database: "sluice", Path: os.Getenv("PATH"), Log: log,
			Download: pgserver.Download{Version: fetch.PostgresVersion, Unpack: l.fetch.UnpackPostgres}})
		if err != nil {
			return nil, err
		}
		l.set["SLUICE_DATABASE_URL"] = s.URL()
		return s, nil
	}}
}

// process is this binary with another command. It is ready when the address in
// variable answers a GET of path with 200.
func (l *localStack) process(command, variable, path string) supervise.Part {
	return supervise.Part{Name: command, Start: l.start(command, nil), Ready: func(ctx context.Context) error {
		return Healthy(ctx, "http://"+l.env.Get(variable)+path, "", 200, http.DefaultClient)
	}}
}

func (l *localStack) start(command string, extra map[string]string) func(context.Context, io.Writer) (supervise.Running, error) {
	return func(ctx context.Context, log io.Writer) (supervise.Running, error) {
		return supervise.Command{Argv: []string{l.self, command}, Env: l.environ(os.Environ(), command, extra)}.Start(ctx, log)
	}
}

// environ is what a process is given: of this process's environment, with the
// stack's settings in it, the variables that it reads.
func (l *localStack) environ(inherited []string, process string, extra map[string]string) (env []string) {
	values := map[string]string{}
	for _, kv := range inherited {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	for _, m := range []map[string]string{l.set, l.own[process], extra, l.late.all()} {
		maps.Copy(values, m)
	}
	for name, value := range values {
		if passedTo(process, name) {
			env = append(env, name+"="+value)
		}
	}
	return env
}
