// Package api composes the control plane's two HTTP surfaces: the public API,
// which stands behind the gateway, and the admin API, which operators reach
// directly.
package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/controlplane/accounts/clientcerts"
	"sluice.dev/sluice/controlplane/accounts/keyimport"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/team"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Routes mounts routes of another package, whose errors the adapter answers.
type Routes func(chi.Router, httpapi.Adapter)

// Config says what the surfaces are made of.
type Config struct {
	DB       postgres.DB
	Respond  httpapi.Adapter
	Identity identity.Verifier
	Sessions *sessions.Service
	// Region and Version are what /v1/health names.
	Region, Version string
	// Open, Keyed and Admin are further routes: for everyone, behind the edge's
	// identity header, and, relative to /admin/v1, for operators.
	Open, Keyed, Admin []Routes
	// Pages are those for people, at the root of the admin API's address. They see
	// for themselves who may see them.
	Pages []func(chi.Router)
	// Proxies are the networks of proxies that stand before the admin API and say in
	// X-Forwarded-For who called them; none: the peer of the connection calls.
	Proxies []netip.Prefix
	// Provider keeps customers' payment methods; nil: the ledger, which charges nobody.
	// Prices are those of plans at a time; nil: there are none.
	Provider provider.Provider
	Prices   func(context.Context, time.Time) (invoicing.Prices, error)
	// Resumed lets the work of an account go on that waited while it was suspended, in the
	// transaction that resumes it; nil: nothing waited.
	Resumed func(ctx context.Context, tx pgx.Tx, account string) error
	// AnswerSecret protects stored answers; see idempotency.Config.
	AnswerSecret [32]byte
	// FormerAnswerSecrets opened those of before.
	FormerAnswerSecrets [][32]byte
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// now is the time by the clock of c.
func (c Config) now() time.Time { return clock.Or(c.Now) }

// keys serves API keys from the database of c.
func (c Config) keys() apikeys.API {
	return apikeys.API{Store: apikeys.Store{DB: c.DB, Now: c.Now}, Respond: c.Respond}
}

// billing serves billing from the database of c.
func (c Config) billing() billing.API {
	return billing.API{Store: billing.Store{DB: c.DB, Now: c.Now}, Respond: c.Respond}
}

// billingRoutes mounts billing for its customers.
func (c Config) billingRoutes(r chi.Router) {
	if c.Provider == nil {
		c.Provider = ledger.Ledger{}
	}
	if c.Prices == nil {
		c.Prices = func(context.Context, time.Time) (p invoicing.Prices, err error) { return p, nil }
	}
	c.billing().Routes(r, c.need)
	methods.API{Store: methods.Store{DB: c.DB, Provider: c.Provider, Now: c.Now}, Respond: c.Respond}.Routes(r, c.need)
	invoicing.API{Store: invoicing.Store{DB: c.DB, Prices: c.Prices, Now: c.Now}, Respond: c.Respond}.Routes(r, c.need)
}

// Public returns the API that stands behind the gateway.
func Public(c Config) http.Handler {
	once := c.joinAnswers()
	r := c.router()
	s, k := sessions.API{Service: c.Sessions, Respond: c.Respond}, c.keys()
	r.Get("/v1/health", httpapi.Handle(c.Respond, http.StatusOK, c.health))
	r.Get("/origin-health", httpapi.Handle(c.Respond, http.StatusOK, c.health))
	s.Routes(r)
	people := team.API{Store: team.Store{DB: c.DB, Now: c.Now}, Sessions: c.Sessions, Respond: c.Respond}
	people.OpenRoutes(r)
	c.mount(r, c.Open)
	r.Group(func(r chi.Router) {
		r.Use(s.Require, once.Wrap)
		s.OwnRoutes(r)
		k.Routes(r)
	})
	r.Group(func(r chi.Router) {
		r.Use(c.anyCaller(s), once.Wrap)
		people.Routes(r, c.need)
		c.billingRoutes(r)
		accounts.API{Store: accounts.Store{DB: c.DB}, Respond: c.Respond}.Routes(r, c.need)
	})
	r.Group(func(r chi.Router) {
		r.Use(c.Identity.Require(c.Respond), once.Wrap)
		k.KeyedRoutes(r)
		c.mount(r, c.Keyed)
	})
	return r
}

// Admin returns the API for operators: everything under /admin/v1 wants an
// operator's key. /health is open.
func Admin(c Config) http.Handler {
	once := c.joinAnswers()
	r := c.router(httpapi.Identify, identity.Direct(c.Proxies))
	a := accounts.API{Store: accounts.Store{DB: c.DB, Resumed: c.Resumed}, Respond: c.Respond,
		CheckPassword: sessions.CheckPassword, HashPassword: func(ctx context.Context, password string) (string, error) {
			return sessions.HashPassword(ctx, password, "")
		}}
	r.Get("/health", httpapi.Handle(c.Respond, http.StatusOK, c.health))
	for _, pages := range c.Pages {
		pages(r)
	}
	r.Route("/admin/v1", func(r chi.Router) {
		r.Use(c.requireOperator, once.Wrap)
		r.Get("/self", httpapi.Handle(c.Respond, http.StatusOK, c.self))
		r.Post("/sessions", httpapi.Handle(c.Respond, http.StatusCreated, c.createSession))
		a.AdminRoutes(r)
		audit.API{DB: c.DB, Respond: c.Respond}.AdminRoutes(r)
		keyimport.API{Service: keyimport.Service{Keys: c.keys().Store, Accounts: a.Store}, Respond: c.Respond}.AdminRoutes(r)
		c.keys().AdminRoutes(r)
		clientcerts.API{Store: clientcerts.Store{DB: c.DB, Now: c.Now}, Respond: c.Respond}.AdminRoutes(r)
		c.billing().AdminRoutes(r)
		c.mount(r, c.Admin)
	})
	return r
}

// joinAnswers lets everything that c makes work in the transaction in which the
// answer to a request with an Idempotency-Key is kept.
func (c *Config) joinAnswers() *idempotency.Middleware {
	m := idempotency.New(idempotency.Config{DB: c.DB, Respond: c.Respond, Secret: c.AnswerSecret, Former: c.FormerAnswerSecrets, Now: c.Now})
	c.DB = idempotency.DB{Pool: c.DB}
	return m
}

// mount adds the routes of other packages to r.
func (c Config) mount(r chi.Router, list []Routes) {
	for _, routes := range list {
		routes(r, c.Respond)
	}
}

// router answers what no route matches with the envelope, survives a handler that
// panics, and refuses addresses that are no text. first come before all else.
func (c Config) router(first ...func(http.Handler) http.Handler) *chi.Mux {
	return c.Respond.Router(append(first, c.Respond.Recover, c.Respond.Text, audit.Middleware(identity.ClientAddress))...)
}

// healthTimeout bounds the database's answer.
const healthTimeout = 2 * time.Second

// health is the answer of GET /v1/health (contract 1.5).
type health struct {
	Status  string `json:"status"`     // ok
	Latency int64  `json:"latency_ms"` // of the database
	Region  string `json:"region"`
	Version string `json:"version"`
}

// SetHeaders keeps caches from storing it.
func (health) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// health answers 200 while the database does, else 503.
func (c Config) health(r *http.Request, _ httpapi.None) (health, error) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	began := c.now()
	if _, err := c.DB.Exec(ctx, `SELECT 1`); err != nil {
		return health{}, unavailable(err)
	}
	return health{"ok", c.now().Sub(began).Milliseconds(), c.Region, c.Version}, nil
}
