package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/controlplane/edgesync/ratesync"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/controlplane/gateway/xds"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/docs"
	edgeidentity "sluice.dev/sluice/filters/identity"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/eventdocs"
)

// version of this build, as /v1/health shows it; the linker sets it.
var version = "dev"

// identitySecret is the name under which edges find the secret that signs
// identity headers.
const identitySecret = "identity"

// apiAddress is how the configuration writes the address of the public API.
const apiAddress = "${api}"

// runControlPlane serves edges (xDS and the key feed), the public API behind
// them, and the admin API.
func runControlPlane(ctx context.Context, env environment) error {
	if err := env.guarded([]string{env.get("SLUICE_XDS_ADDR")}); err != nil {
		return err
	}
	pool, err := env.database(ctx, "sluice controlplane", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	env = env.timed(ctx, pool)
	defer present(ctx, pool, "controlplane")()
	secret, err := env.platformSecret()
	if err != nil {
		return err
	}
	if err := keyfeed.PutSecret(ctx, pool, identitySecret, secret); err != nil {
		return err
	}
	if err := keyfeed.PutValue(ctx, pool, edgeidentity.Former, []byte(strings.Join(env.list("SLUICE_IDENTITY_V1"), ","))); err != nil {
		return fmt.Errorf("SLUICE_IDENTITY_V1: %w", err)
	}
	tracer, err := env.tracer(ctx, "controlplane")
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	metrics := telemetry.New("controlplane", version)
	adapter := httpapi.Adapter{DocsBase: env.publicURL()}
	keys := keyfeed.New(keyfeed.Config{Pool: pool, Tokens: env.list("SLUICE_FEED_TOKEN"), Respond: adapter, Metrics: metrics})
	received := usage.NewReceiver(usage.Receiver{Store: usage.Store{DB: pool}, Respond: adapter}, metrics)
	mutual, err := env.mutual()
	if err != nil {
		return err
	}
	edges, err := env.xds(pool, metrics, mutual.named())
	if err != nil {
		return err
	}
	metrics.MustRegister(edgestatus.Metrics(edges), telemetry.Pool(pool))
	registry := edgestatus.Store{DB: pool}
	recorder := edgestatus.Recorder{Store: registry, Source: edges, Replica: replicaName()}
	limits := ratesync.New(ratesync.Config{Pool: pool, Respond: adapter})
	versions := &config.Memory{}
	loader := xds.Loader{Pool: pool, Memory: versions, Server: edges}
	if err := loader.Load(ctx); err != nil {
		slog.Warn("no configuration yet", "cause", err)
	}

	surfaces, err := env.api(pool, edges, versions, adapter, metrics, tracer)
	if err != nil {
		return err
	}
	if err := env.addDashboard(ctx, &surfaces, pool, edges, tracer); err != nil {
		return err
	}
	callers, err := env.verifier(nil) // edges call for themselves: their values are for no product
	if err != nil {
		return err
	}
	payments, err := env.payments(pool, callers, adapter)
	if err != nil {
		return err
	}
	signers, err := env.issuers(pool)
	if err != nil {
		return err
	}
	if _, err := (apikeys.Store{DB: pool}).EmitAccounts(ctx); err != nil {
		return err
	}
	end, err := env.stopping()
	if err != nil {
		return err
	}
	held, err := env.bodies(metrics, surfaces.Identity, adapter)
	if err != nil {
		return err
	}
	scrapers := telemetry.Scrapers{Tokens: env.list("SLUICE_METRICS_TOKEN"), Respond: adapter}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { mutual.run(ctx); return nil })
	g.Go(func() error { keys.Run(ctx); return nil })
	g.Go(func() error { limits.Run(ctx); return nil })
	g.Go(func() error { signers.Run(ctx); return nil })
	g.Go(func() error { loader.Run(ctx); return nil })
	g.Go(func() error { recorder.Run(ctx); edges.Close(); return nil })
	g.Go(func() error {
		return serve(ctx, end,
			endpoint{name: "admin API", addr: env.get("SLUICE_ADMIN_ADDR"), handler: scrapers.Beside(tracer.Wrap(telemetry.NewRequests(metrics, "admin").Wrap(held.direct(api.Admin(surfaces)))), metrics)},
			endpoint{name: "public API", addr: env.get("SLUICE_API_LISTEN"), handler: tracer.Wrap(telemetry.NewRequests(metrics, "api").Wrap(held.wrap(api.Public(surfaces))))},
			endpoint{name: "edges", addr: env.get("SLUICE_XDS_ADDR"), handler: mutual.guard(edgeMux(edges, keys, keys.Guard(registry.Reports(adapter)), payments.edges, keys.Guard(limits), keys.Guard(received)), adapter), tls: mutual.tls(), h2c: true, streams: true},
		)
	})
	return g.Wait()
}

// api is what the public and the admin API are made of.
func (e environment) api(pool *pgxpool.Pool, edges *xds.Server, versions *config.Memory, adapter httpapi.Adapter, metrics prometheus.Registerer, tracer *traces.Tracer) (api.Config, error) {
	current := &config.Current{Store: config.Store{DB: pool, Memory: versions}}
	verifier, err := e.verifier(leadingTo(current, apiAddress))
	if err != nil {
		return api.Config{}, err
	}
	shared := postgres.Share(pool, identity.Account)
	s, err := e.services(pool, idempotency.DB{Pool: shared}, metrics, tracer)
	if err != nil {
		return api.Config{}, err
	}
	described, err := e.publicDescription(current, adapter)
	if err != nil {
		return api.Config{}, err
	}
	describedAdmin, err := adminDescription(adapter)
	if err != nil {
		return api.Config{}, err
	}
	payments, err := e.payments(pool, verifier, adapter)
	if err != nil {
		return api.Config{}, err
	}
	documentation, err := docsite.Routes(docs.Files, adapter)
	if err != nil {
		return api.Config{}, err
	}
	machines := e.agents(current, edges.Addresses, described.Text, verifier, adapter)
	people, err := e.sessions(pool)
	if err != nil {
		return api.Config{}, err
	}
	proxies, err := e.prefixes("SLUICE_ADMIN_TRUSTED_PROXIES")
	if err != nil {
		return api.Config{}, err
	}
	apps := e.oauth(idempotency.DB{Pool: shared}, people)
	documents := config.Admin{Store: config.Store{DB: pool, Memory: versions}, Check: edges.Check, Checker: edges.Checker(), Respond: adapter}
	return api.Config{
		DB:           shared,
		Respond:      adapter,
		Identity:     verifier,
		Sessions:     people,
		Proxies:      proxies,
		Region:       e.get("SLUICE_REGION"),
		Version:      version,
		AnswerSecret: s.answers, FormerAnswerSecrets: s.former,
		Open: []api.Routes{oauth.Routes(apps, adapter), eventdocs.Routes(adapter), documentation, described.Routes, payments.open, machines.openRoutes},
		Keyed: []api.Routes{
			func(r chi.Router) { s.webhooks.Routes(r, adapter); s.webhooks.InternalRoutes(r, adapter) },
			machines.discovery.KeyedRoutes,
			func(r chi.Router) { s.schedules.Routes(r, adapter) },
		},
		Admin: []api.Routes{documents.Routes, edgestatus.Store{DB: pool}.AdminRoutes(adapter), status.Store{DB: pool}.Routes(adapter), oauth.AdminRoutes(apps, adapter), describedAdmin, payments.admin},
	}, nil
}

// oauth is how every process makes and checks grants to applications.
func (e environment) oauth(db postgres.DB, people *sessions.Service) *oauth.Service {
	return oauth.New(oauth.Config{DB: db, Sessions: people, Issuer: e.publicURL(), Audience: e.publicURL(), Now: e.now})
}

// edgeMux serves gRPC streams, the key feed, reports and usage of edges, the
// payments and the exchange of counts on one address.
func edgeMux(edges *xds.Server, keys *keyfeed.Feed, reports, payments, limits, received http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+ratesync.Path, limits)
	mux.Handle("GET "+keyfeed.Path, keys)
	mux.Handle("POST "+edgestatus.ReportPath, reports)
	mux.Handle("POST "+usage.Path, received)
	mux.Handle("POST "+x402.ClaimsPath, payments)
	mux.Handle("POST "+x402.ClaimsPath+"/", payments)
	mux.Handle("/envoy.service.discovery.v3.AggregatedDiscoveryService/", edges.Handler())
	return mux
}

// replicaName tells this process from every other, and says where it runs.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + rand.Text()[:6]
}

func (e environment) xds(pool *pgxpool.Pool, metrics prometheus.Registerer, named func(context.Context, string) bool) (*xds.Server, error) {
	upstreams, err := e.upstreams()
	if err != nil {
		return nil, err
	}
	addresses, err := e.addresses()
	if err != nil {
		return nil, err
	}
	traced, err := e.traces()
	if err != nil {
		return nil, err
	}
	return xds.New(xds.Config{
		Metrics: metrics,
		Named:   named,
		Resources: resources.Options{
			Addresses: addresses,
			DocsBase:  e.publicURL(),
			Own:       []string{e.get("SLUICE_GATEWAY_ADDR"), e.get("SLUICE_RUNTIME_ADDR"), hostPort(e.publicURL())},
			Upstreams: upstreams,
			Traces:    traced,
		},
		Numbers: numbers(pool),
	}), nil
}

// upstreams says where products may be; nil: anywhere.
func (e environment) upstreams() (*resources.Upstreams, error) {
	switch e.get("SLUICE_UPSTREAM_ALLOW_CIDRS") {
	case "any":
		return nil, nil
	case "none":
		return &resources.Upstreams{}, nil
	}
	networks, err := e.prefixes("SLUICE_UPSTREAM_ALLOW_CIDRS")
	return &resources.Upstreams{Networks: networks}, err
}

// hostPort is where a URL leads to; "" when it is none.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// addresses are those that the configuration names as ${name}: of all processes
// that serve it, else of the one that this machine has.
func (e environment) addresses() (map[string][]string, error) {
	all, errs := map[string][]string{}, []error(nil)
	for _, name := range []string{"api", "media", "runtime"} {
		var err error
		all[name], err = e.upstream("SLUICE_" + strings.ToUpper(name))
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// upstream returns the addresses in prefix_UPSTREAM, or else the one in
// prefix_LISTEN, as this machine reaches it.
func (e environment) upstream(prefix string) ([]string, error) {
	name := prefix + "_UPSTREAM"
	text := e.get(name)
	if text == "" {
		name = prefix + "_LISTEN"
		text = nearby(e.get(name))
	}
	var all []string
	for addr := range strings.SplitSeq(text, ",") {
		addr = strings.TrimSpace(addr)
		if !config.ValidAddress(addr) {
			return nil, fmt.Errorf("%s: %q is not host:port", name, addr)
		}
		all = append(all, addr)
	}
	return all, nil
}

// nearby is an address of this machine at which what listens on addr is reached.
func nearby(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// numbers gives scopes and plans their numbers in pool's database.
func numbers(pool *pgxpool.Pool) func(context.Context, config.Document) (config.Numbers, error) {
	return func(ctx context.Context, d config.Document) (config.Numbers, error) {
		return config.EnsureNumbers(ctx, pool, d)
	}
}

// database opens the pool of a process.
func (e environment) database(ctx context.Context, name string, conns int32) (*pgxpool.Pool, error) {
	url, err := e.require("SLUICE_DATABASE_URL")
	if err != nil {
		return nil, err
	}
	return postgres.Open(ctx, postgres.Config{URL: url, MaxConns: conns, Name: name})
}
