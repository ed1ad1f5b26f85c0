// Package app is wiring: it reads the environment, builds what a process needs, every
// service once, and runs it.
package app

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/web/openapi/bodies"
)

// Version of this build, as /v1/health shows it; the linker sets it.
var Version = "dev"

// process is what every process with a database has.
type process struct {
	Environment // with the database's clock
	pool        *pgxpool.Pool
	metrics     *prometheus.Registry
	tracer      *traces.Tracer // nil: nothing is traced
	respond     httpapi.Adapter
	leave       func()
}

// start connects a process to the database, with at most so many connections, and has
// the others see that it runs, until close.
func (e Environment) start(ctx context.Context, kind string, connections int32) (*process, error) {
	pool, err := e.database(ctx, "sluice "+kind, connections)
	if err != nil {
		return nil, err
	}
	clock := postgres.NewClock(ctx, pool)
	e.now = clock.Now
	p := &process{Environment: e, pool: pool, metrics: telemetry.New(kind, Version), respond: httpapi.Adapter{DocsBase: e.publicURL()}}
	if kind == "controlplane" || kind == "media" { // which have JSON doors
		p.respond.Bodies = bodies.New(everything)
	}
	p.metrics.MustRegister(telemetry.Pool(pool))
	if v, _ := lookUp("SLUICE_OTLP_ENDPOINT"); v.readBy(kind) {
		if p.tracer, err = e.tracer(ctx, kind); err != nil {
			pool.Close()
			return nil, err
		}
	}
	knows, err := migrations.Newest()
	if err != nil {
		pool.Close()
		return nil, err
	}
	go clock.Run(ctx)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var heartbeat sync.WaitGroup
	heartbeat.Go(func() {
		status.Beat{DB: pool, Name: replicaName(), Kind: kind, Build: Version, Knows: knows}.Run(beating)
	})
	p.leave = func() { stop(); heartbeat.Wait() }
	return p, nil
}

func (p *process) close(ctx context.Context) {
	p.tracer.Close(ctx)
	p.leave()
	p.pool.Close()
}

// instrument counts and traces the requests of a surface.
func (p *process) instrument(surface string, h http.Handler) http.Handler {
	return p.tracer.Wrap(telemetry.NewRequests(p.metrics, surface).Wrap(h))
}

// requestLimits are how a process ends the requests of edges, and what it holds of
// their bodies.
func (p *process) requestLimits(v identity.Verifier) (shutdown shutdownPolicy, bodies bodyLimit, err error) {
	shutdown, err = p.shutdownPolicy()
	if err == nil {
		bodies, err = p.bodyLimit(p.metrics, v, p.respond)
	}
	return shutdown, bodies, err
}

// replicaName tells this process from every other, and says where it runs.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + rand.Text()[:6]
}

// database opens the pool of a process.
func (e Environment) database(ctx context.Context, name string, conns int32) (*pgxpool.Pool, error) {
	url, err := e.DatabaseURL()
	if err != nil {
		return nil, err
	}
	return postgres.Open(ctx, postgres.Config{URL: url, MaxConns: conns, Name: name})
}

// connector makes connections for what lasts longer than a transaction.
func (e Environment) connector(name string) (func(context.Context) (*pgx.Conn, error), error) {
	url, err := e.DirectURL()
	if err != nil {
		return nil, err
	}
	return postgres.Connector(postgres.Config{URL: url, Name: name})
}
