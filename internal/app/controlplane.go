package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/controlplane/edgesync/ratesync"
	"sluice.dev/sluice/controlplane/gateway/certificates"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/issuers"
	"sluice.dev/sluice/controlplane/gateway/rehearsal"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/controlplane/gateway/xds"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/certs"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/listen"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/schedules/product"
)

// apiAddress is how the configuration writes the address of the public API.
const apiAddress = "${api}"

// controlPlane has every service of a control plane, each made once.
type controlPlane struct {
	*process
	services
	shared     *postgres.Shared                         // the pool, a quarter of it for each account
	repeatable idempotency.DB                           // the shared pool, or the transaction of a request that may be repeated
	connect    func(context.Context) (*pgx.Conn, error) // past a pooler, for what lasts longer than a transaction
	certs      *certs.Source                            // shown to edges; nil: plain text
	edges      *xds.Server
	store      config.Store
	current    *config.Current
	documents  *config.Publisher
	pathKey    requestlog.PathKey
	rehearsals *rehearsal.Service
	all        bool // false: the profile gateway
	profile    string
	named      *namedCertificates
	sessions   *sessions.Service
	apps       *oauth.Service
	payments   *payments.Service
	media      product.Client    // not of a profile without it
	verifier   identity.Verifier // of requests to products that this process serves
}

// newControlPlane makes the services. It does not call the database.
func newControlPlane(p *process) (c *controlPlane, err error) {
	c = &controlPlane{process: p, shared: postgres.Share(p.pool, identity.Account), store: config.Store{DB: p.pool, Memory: &config.Memory{}}}
	c.repeatable = idempotency.DB{Pool: c.shared}
	if c.connect, err = p.connector("sluice controlplane session"); err != nil {
		return nil, err
	}
	if c.profile, err = c.Profile(); err != nil {
		return nil, err
	}
	c.all = c.profile == config.ProfilePlatform
	c.current = &config.Current{Store: c.store}
	secret, err := p.platformSecret()
	if err != nil {
		return nil, err
	}
	c.pathKey = requestlog.NewPathKey(secret[:])
	if c.certs, err = c.peerCerts(certs.ControlPlane); err != nil {
		return nil, err
	}
	if c.edges, err = c.newXDS(); err != nil {
		return nil, err
	}
	if c.named, err = c.newCertificates(); err != nil {
		return nil, err
	}
	c.documents = config.NewPublisher(c.store, c.edges.Check, c.edges.Checker())
	c.documents.Profile = c.profile
	c.rehearsals = rehearsal.New(rehearsal.Service{Documents: c.documents, Requests: c.requests(p.pool), DocsBase: c.publicURL(), Now: c.now})
	if c.services, err = p.services(c.repeatable); err != nil {
		return nil, err
	}
	if !c.all {
		c.webhooks.Groups = ownEvents
	}
	if c.sessions, err = c.Environment.sessions(p.pool); err != nil {
		return nil, err
	}
	c.apps = c.oauth(c.repeatable, c.sessions)
	if c.all {
		if c.payments, err = p.payments(c.services, c.store); err != nil {
			return nil, err
		}
		if c.media, err = p.streams(); err != nil {
			return nil, err
		}
		// The product believes its own secret, which is derived from the platform's.
		c.media.Product, c.media.Secret = mediaProduct, identityheader.ProductSecret(secret[:], mediaProduct)
	}
	c.verifier, err = c.newVerifier(productsAt(c.current, apiAddress))
	return c, err
}

// RunControlPlane serves edges (xDS and the key feed), the public API behind
// them, and the admin API.
func RunControlPlane(ctx context.Context, env Environment) error {
	if err := env.checkExposure([]string{env.Get("SLUICE_XDS_ADDR")}); err != nil {
		return err
	}
	p, err := env.start(ctx, "controlplane", 20)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	if err := p.publishIdentitySecrets(ctx); err != nil {
		return err
	}
	c, err := newControlPlane(p)
	if err != nil {
		return err
	}
	return c.run(ctx)
}

// publishIdentitySecrets lets edges have what they sign identity headers with.
func (p *process) publishIdentitySecrets(ctx context.Context) error {
	secret, err := p.platformSecret()
	if err != nil {
		return err
	}
	if err := keyfeed.PutSecret(ctx, p.pool, edgeapi.IdentitySecret, secret); err != nil {
		return err
	}
	if err := keyfeed.PutValue(ctx, p.pool, identityheader.Former, []byte(strings.Join(p.List("SLUICE_IDENTITY_V1"), ","))); err != nil {
		return fmt.Errorf("SLUICE_IDENTITY_V1: %w", err)
	}
	return nil
}

func (c *controlPlane) run(ctx context.Context) error {
	c.metrics.MustRegister(edgestatus.Metrics(c.edges), &c.named.publisher)
	if err := c.named.publisher.Load(ctx); err != nil {
		slog.Warn("no certificates of names yet", "cause", err)
	}
	heard := listen.New(c.connect, nil)
	c.named.publisher.Heard = heard.On(certificates.Channel)
	loader := xds.Loader{Pool: c.pool, Heard: heard.On(config.Channel), Memory: c.store.Memory, Server: c.edges, Profile: c.profile}
	if err := loader.Load(ctx); err != nil {
		slog.Warn("no configuration yet", "cause", err)
	}
	surfaces, err := c.surfaces()
	if err != nil {
		return err
	}
	surfaces.Pages = []func(chi.Router){c.dashboard(ctx, surfaces.Provider)}
	signers, err := c.issuers()
	if err != nil {
		return err
	}
	if _, err := (apikeys.Store{DB: c.pool}).EmitAccounts(ctx); err != nil {
		return err
	}
	shutdown, bodies, err := c.requestLimits(c.verifier)
	if err != nil {
		return err
	}
	keys := keyfeed.New(keyfeed.Config{Pool: c.pool, Heard: heard.On(keyfeed.Channel), Tokens: c.List("SLUICE_FEED_TOKEN"), Respond: c.respond, Metrics: c.metrics})
	rates := ratesync.New(ratesync.Config{Pool: c.pool, Respond: c.respond})
	edges, err := c.edgeEndpoint(keys, rates)
	if err != nil {
		return err
	}
	chat := apikeys.ChatRollout{DB: c.pool, Notify: config.Channel}
	recorder := edgestatus.Recorder{Store: edgestatus.Store{DB: c.pool}, Source: c.edges, Replica: replicaName()}
	scrapers := telemetry.Scrapers{Tokens: c.List("SLUICE_METRICS_TOKEN"), Respond: c.respond}
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context){heard.Run, keys.Run, rates.Run, signers.Run, loader.Run, chat.Run, c.named.publisher.Run, c.named.manager.Run, c.requests(c.pool).Run} {
		g.Go(func() error { run(ctx); return nil })
	}
	if c.certs != nil {
		g.Go(func() error { c.certs.Run(ctx); return nil })
	}
	g.Go(func() error { recorder.Run(ctx); c.edges.Close(); return nil })
	g.Go(func() error {
		return serve(ctx, shutdown,
			endpoint{name: "admin API", addr: c.Get("SLUICE_ADMIN_ADDR"), handler: scrapers.Beside(c.instrument("admin", bodies.direct(api.Admin(surfaces))), c.metrics)},
			endpoint{name: "public API", addr: c.Get("SLUICE_API_LISTEN"), handler: c.instrument("api", bodies.wrap(api.Public(surfaces)))},
			edges,
		)
	})
	return g.Wait()
}

// edgeEndpoint serves xDS, the key feed, reports and usage of edges, payments and the
// rate sync on one address.
func (c *controlPlane) edgeEndpoint(keys *keyfeed.Feed, rates http.Handler) (endpoint, error) {
	verifier, err := c.newVerifier(nil) // edges call for themselves: their values are for no product
	if err != nil {
		return endpoint{}, err
	}
	received := usage.NewReceiver(usage.Receiver{Store: usage.Store{DB: c.pool}, Respond: c.respond}, c.metrics)
	mux := http.NewServeMux()
	mux.Handle("POST "+edgeapi.CountsPath, keys.Guard(rates))
	mux.Handle("GET "+edgeapi.RecordsPath, keys)
	mux.Handle("POST "+edgeapi.ReportPath, keys.Guard(edgestatus.Store{DB: c.pool}.Reports(c.respond)))
	mux.Handle("POST "+edgeapi.RequestsPath, keys.Guard(requestlog.NewReceiver(&requestlog.Receiver{Store: c.requests(c.pool), Respond: c.respond, Latest: c.current.Get}, c.metrics)))
	mux.Handle("POST "+edgeapi.UsagePath, keys.Guard(received))
	if c.all {
		settle := c.payments.EdgeHandler(verifier, c.respond)
		mux.Handle("POST "+x402.ClaimsPath, settle)
		mux.Handle("POST "+x402.ClaimsPath+"/", settle)
	}
	c.named.challenges.Mount(mux)
	mux.Handle("/envoy.service.discovery.v3.AggregatedDiscoveryService/", keys.Guard(c.edges.Handler())) // keys of certificates are in it
	e := endpoint{name: "edges", addr: c.Get("SLUICE_XDS_ADDR"), handler: mux, h2c: true, streams: true}
	if c.certs != nil {
		e.handler, e.tls = certs.Guard(mux, c.respond.Error), c.certs.Mutual()
	}
	return e, nil
}

func (c *controlPlane) newXDS() (*xds.Server, error) {
	upstreams, err := c.upstreams()
	if err != nil {
		return nil, err
	}
	addresses, err := c.addresses()
	if err != nil {
		return nil, err
	}
	traced, err := c.traces()
	if err != nil {
		return nil, err
	}
	cfg := xds.Config{
		Metrics: c.metrics,
		Resources: resources.Options{
			Addresses: addresses,
			DocsBase:  c.publicURL(),
			Own:       []string{c.Get("SLUICE_GATEWAY_ADDR"), c.Get("SLUICE_RUNTIME_ADDR"), hostPort(c.publicURL())},
			Upstreams: upstreams,
			Traces:    traced,
		},
		Numbers: func(ctx context.Context, d config.Document) (config.Numbers, error) {
			return config.EnsureNumbers(ctx, c.pool, d)
		},
	}
	if c.certs != nil {
		cfg.Named = certs.StreamNames
	}
	return xds.New(cfg), nil
}

// issuers keeps the public keys of those whose tokens are accepted at the edges.
func (c *controlPlane) issuers() (*issuers.Service, error) {
	allow, err := c.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return nil, err
	}
	return issuers.New(issuers.Config{
		DB: c.pool, Own: c.publicURL(), Keys: c.sessions.Keyring.Public,
		Client: outbound.New(outbound.Config{Allow: allow, MaxBody: issuers.MaxBody}),
	}), nil
}

// requests is the request log.
func (c *controlPlane) requests(db postgres.DB) requestlog.Store {
	return requestlog.Store{DB: db, DocsBase: c.publicURL(), PathKey: c.pathKey, Now: c.now}
}

// newestDocument reads the configuration in force.
func (c *controlPlane) newestDocument(ctx context.Context) (config.Document, error) {
	v, err := c.store.Latest(ctx)
	return v.Document, err
}
