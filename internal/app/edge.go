package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/deploy/wasm"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/envoy"
	"sluice.dev/sluice/envoy/logpipe"
	"sluice.dev/sluice/envoy/relay"
	"sluice.dev/sluice/envoy/requestlog"
	"sluice.dev/sluice/platform/certs"
	"sluice.dev/sluice/platform/process/memlimit"
	"sluice.dev/sluice/platform/process/telemetry"
)

// RunEdge supervises one Envoy, and stands between it and the control plane.
func RunEdge(ctx context.Context, env Environment) error {
	if err := env.checkExposure(strings.Split(env.Get("SLUICE_XDS_ADDR"), ",")); err != nil {
		return err
	}
	binary, err := env.envoy()
	if err != nil {
		return err
	}
	concurrency, err := env.number("SLUICE_EDGE_CONCURRENCY", 0, 256)
	if err != nil {
		return err
	}
	runtime, err := env.runtimeAddr()
	if err != nil {
		return err
	}
	name := env.Get("SLUICE_EDGE_NAME")
	state := filepath.Join(env.Get("SLUICE_STATE_DIR"), "edges", name)
	dir, err := env.wasmParent(state)
	if err != nil {
		return err
	}
	peer, err := env.peerCerts(name)
	if err != nil {
		return err
	}
	var running atomic.Pointer[envoy.Edge] // which is made with the agent
	agent, err := env.agent(name, state, peer, func() []string {
		if e := running.Load(); e != nil {
			return e.Outdated()
		}
		return nil
	})
	if err != nil {
		return err
	}
	logs, err := env.logs()
	if err != nil {
		return err
	}
	lines := edgeLog(logs)
	defer lines.Close(time.Second)
	end, err := env.shutdownPolicy()
	if err != nil {
		return err
	}
	requests := recordRequests(name, agent, running.Load, lines)
	cfg := envoy.EdgeConfig{
		Bootstrap: envoy.Config{
			NodeID:      name,
			GatewayAddr: env.Get("SLUICE_GATEWAY_ADDR"),
			RuntimeAddr: runtime,
			AdminAddr:   env.Get("SLUICE_ENVOY_ADMIN_ADDR"),

			ChallengeAddr: agent.ChallengeAddr(),

			MaxHeapBytes: envoyHeap(memlimit.Container(os.DirFS("/"))),
		},
		Agent:       agent,
		Binary:      binary,
		Dir:         dir,
		StateDir:    state,
		Concurrency: concurrency,
		Output:      requests,
		DocsBase:    env.publicURL(),
		LogJSON:     logs.JSON,
		Announce:    end.announce,
		DrainTime:   end.grace,
		LogLevel:    envoyLevel(logs.Level),
	}
	client, err := env.clientTLS(&cfg)
	if err != nil {
		return err
	}
	if cfg.TLS != nil {
		cfg.TLS = agent.ByName(cfg.TLS)
	}
	edge, err := envoy.NewEdge(cfg)
	if err != nil {
		return err
	}
	running.Store(edge)
	for _, s := range []*certs.Source{client, peer} {
		if s != nil {
			go s.Run(ctx)
		}
	}
	return env.runBoth(ctx, agent, edge, lines, requests.Record)
}

// envoyHeap is where Envoy stops accepting requests, of what the container may take:
// before it is ended for more, with room for the filters' memory and the agent; not
// less than it needs to serve at all. 0: the default.
func envoyHeap(limit int64) uint64 {
	const least, most = 256 << 20, 2 << 30
	if limit/5*3 >= most {
		return 0
	}
	return uint64(max(least, limit/5*3))
}

// edgeLog has the agent log, as Envoy does, to standard error without ever waiting
// for whoever reads that.
func edgeLog(c telemetry.LogConfig) *logpipe.Pipe {
	lines := logpipe.New(logpipe.Config{Out: os.Stderr, Dropped: func(lines int) {
		slog.Error("lines of the log were dropped: who reads it is too slow, or hangs", "lines", lines)
	}})
	c.Process = "edge"
	slog.SetDefault(telemetry.NewLogger(lines, c))
	return lines
}

// envoyLevel is Envoy's level for one of ours. Its info is as talkative as our
// debug, and its debug shows credentials.
func envoyLevel(l slog.Level) string {
	switch {
	case l <= slog.LevelDebug:
		return "info"
	case l >= slog.LevelError:
		return "error"
	}
	return "warning"
}

// runBoth runs the edge until ctx ends, and the agent until the edge has. A
// SIGHUP lets a new Envoy take over.
func (e Environment) runBoth(ctx context.Context, agent *relay.Relay, edge *envoy.Edge, lines *logpipe.Pipe, requests *requestlog.Recorder) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, inner := errgroup.WithContext(inner)
	g.Go(func() error { return agent.Run(inner) })
	g.Go(func() error { requests.Run(inner); return nil })
	if addr := e.Get("SLUICE_EDGE_METRICS_ADDR"); addr != programs.Off {
		metrics := telemetry.New("edge", Version)
		metrics.MustRegister(agent, edge, requests, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_agent_log_lines_dropped_total", Help: "Lines of the agent's and Envoy's log that were dropped because nobody took them.",
		}, func() float64 { return float64(lines.Dropped()) }), prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_agent_worker_hangs_total", Help: "Workers of Envoy that were found to hang in a request; another Envoy takes over then.",
		}, func() float64 { return float64(edge.Hangs()) }))
		g.Go(func() error {
			return serve(inner, atOnce, endpoint{name: "health", addr: addr, handler: telemetry.Beside(serving(edge), metrics)})
		})
	}
	g.Go(func() error {
		defer stop()
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		go func() {
			for range hup {
				edge.Reload()
			}
		}()
		outer, end := context.WithCancel(ctx)
		defer end()
		context.AfterFunc(inner, end) // an edge whose agent has failed drains as well
		err := edge.Run(outer)
		agent.EnvoyEnded()
		return err
	})
	return g.Wait()
}

// serving answers GET /health: 200 when every connection meets Envoy, else 503.
func serving(edge *envoy.Edge) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !edge.Serving() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"starting"}`+"\n")
			return
		}
		_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
	})
	return mux
}

// agent is what stands between Envoy and the control plane.
func (e Environment) agent(name, state string, peer *certs.Source, outdated func() []string) (*relay.Relay, error) {
	age, err := time.ParseDuration(e.Get("SLUICE_EDGE_MAX_STATE_AGE"))
	if err != nil || age <= 0 {
		return nil, fmt.Errorf("SLUICE_EDGE_MAX_STATE_AGE is %q: expected a time such as 24h", e.Get("SLUICE_EDGE_MAX_STATE_AGE"))
	}
	cfg := relay.Config{
		Upstreams: strings.Split(e.Get("SLUICE_XDS_ADDR"), ","),
		Token:     e.First("SLUICE_FEED_TOKEN"),
		Edge:      name,
		Build:     Version,
		Outdated:  outdated,
		Dir:       state,
		MaxAge:    age,
	}
	if peer != nil {
		cfg.TLS = peer.Client(certs.ControlPlane)
	}
	return relay.New(cfg)
}

// envoy finds Envoy's binary.
func (e Environment) envoy() (string, error) {
	return envoy.Find(envoy.FindConfig{
		Binary: e.Get("SLUICE_ENVOY"),
		Path:   os.Getenv("PATH"),
		Tools:  filepath.Join(e.Get("SLUICE_STATE_DIR"), "tools"),
	})
}

// wasmParent is the folder that holds wasm/: Envoy runs there, so that the
// control plane can name filters by a path that is the same on every edge. Without a
// folder of the operator's it is the edge's own, into which the binary's are put.
func (e Environment) wasmParent(state string) (string, error) {
	dir, err := e.wasmDir()
	if err != nil {
		return "", err
	}
	if dir != "" {
		return filepath.Dir(dir), nil
	}
	if err := os.MkdirAll(state, 0o700); err != nil { // it gets secrets as well
		return "", err
	}
	if err := wasm.WriteTo(filepath.Join(state, "wasm")); err != nil {
		return "", fmt.Errorf("unpack the filters: %w", err)
	}
	return filepath.Abs(state)
}

// wasmDir is the operator's own folder of filters; "": none.
func (e Environment) wasmDir() (string, error) {
	dir := e.Get("SLUICE_WASM_DIR")
	if dir == "" {
		return "", nil
	}
	if filepath.Base(dir) != "wasm" {
		return "", fmt.Errorf("SLUICE_WASM_DIR is %s: the folder must be named wasm", dir)
	}
	return filepath.Abs(dir)
}
