// Package dashboard is the dashboard: pages for the people who run the platform, and
// for those of an account, on the admin listener. Everything on them is read from
// the packages of the domain, and changed through them, so that a page and the API
// never disagree; this package decides who sees what, and how it looks.
//
// Pages are rendered here and work without script. One script of ours keeps the
// parts that change up to date, by server-sent events.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/accounts/websession"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/rehearsal"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/product"
	"sluice.dev/sluice/workers/webhooks"
)

// pagesAtOnce is how many pages may be read at once, as each holds a connection to
// the database, of which a process has 20, and pagesEach how many of them by one
// account: what it asks for beyond waits.
const (
	pagesAtOnce = 12
	pagesEach   = 4
)

// Root is the path under which everything is served.
const Root = "/dashboard"

// Config says what the dashboard shows.
type Config struct {
	DB       postgres.DB       // required
	Sessions *sessions.Service // required: signs people in
	// Documents reads the configuration and rolls it back.
	Documents *config.Publisher
	Rehearse  *rehearsal.Service // tries a version on recorded requests
	Webhooks  *webhooks.Service
	Schedules *schedules.Service
	Payments  payments.Admin
	Apps      *oauth.Service // registers applications
	Media     product.Client // asks the media product for streams
	// Provider keeps payment methods; nil: the ledger. Prices are those of plans at a
	// time; nil: there are none.
	Provider provider.Provider
	Prices   func(context.Context, time.Time) (invoicing.Prices, error)
	// Resumed lets the work of an account go on that waited while it was suspended.
	Resumed  func(ctx context.Context, tx pgx.Tx, account string) error
	Alone    bool // there are no schedules and payments
	Requests requestlog.Store
	Version  string // of this build
	OnChain  bool   // payments settle on a chain, which explorers show
	// Secure says that people reach the dashboard over https only.
	Secure bool
	// Every is how often live parts are read anew; 0: 2 s.
	Every time.Duration
	// Streams is how many live parts may be open at once, a quarter of them for
	// one account; 0: 64.
	Streams int
	// Done ends live parts when it is closed; nil: never.
	Done <-chan struct{}
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Log gets failures of ours; nil: slog.Default.
	Log *slog.Logger
}

// site is the dashboard at work.
type site struct {
	Config
	guard    websession.Guard
	accounts accounts.Store
	keys     apikeys.Store
	fleet    edgestatus.Store
	usage    usage.Store
	open     *fairshare.Pool // live parts, by account
	openEach *fairshare.Pool // the same, by session
	pages    *fairshare.Pool // pages that are being read, by account
	recent   *recent         // what live parts have read
}

// Routes returns a function that mounts the dashboard under Root, and leads there
// from /.
func Routes(c Config) func(chi.Router) {
	if c.Every == 0 {
		c.Every = 2 * time.Second
	}
	if c.Streams == 0 {
		c.Streams = 64
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Provider == nil {
		c.Provider = ledger.Ledger{}
	}
	if c.Prices == nil {
		c.Prices = func(context.Context, time.Time) (p invoicing.Prices, err error) { return p, nil }
	}
	s := &site{
		Config:   c,
		guard:    guard(c),
		accounts: accounts.Store{DB: c.DB, Resumed: c.Resumed},
		keys:     apikeys.Store{DB: c.DB, Now: c.Now},
		fleet:    edgestatus.Store{DB: c.DB},
		usage:    usage.Store{DB: c.DB, Now: c.Now},
		open:     fairshare.New(fairshare.Config{Places: c.Streams}),
		openEach: fairshare.New(fairshare.Config{Places: c.Streams, Share: streamsEach}),
		pages:    fairshare.New(fairshare.Config{Places: pagesAtOnce, Share: pagesEach}),
		recent:   newRecent(),
	}
	return s.mount
}

// guard keeps who is signed in. Over https the cookies are the host's own, which no
// neighbour under the same domain can plant; that wants them for all of its paths.
func guard(c Config) websession.Guard {
	g := websession.Guard{Secure: c.Secure, Path: Root, Name: "sluice-dashboard-", SameSite: http.SameSiteStrictMode, Sessions: c.Sessions}
	if c.Secure {
		g.Path = "/"
	}
	return g
}

// mount adds the routes.
func (s *site) mount(r chi.Router) {
	r.Get("/", http.RedirectHandler(Root, http.StatusSeeOther).ServeHTTP)
	r.Get("/favicon.ico", http.RedirectHandler(files.Path("icon.svg"), http.StatusMovedPermanently).ServeHTTP)
	r.Get(Root+"/assets/{name}", s.page(files.Serve))
	r.Route(Root, func(r chi.Router) {
		r.NotFound(s.page(s.notFound))
		r.MethodNotAllowed(s.page(s.notFound))
		r.Get("/sign-in", s.page(s.showSignIn))
		r.Post("/sign-in", s.page(s.signIn))
		r.Post("/sign-out", s.page(s.signOut))
		r.Get("/live/{part}", s.page(s.live))
		r.Get("/search", s.page(s.seen(section{}, (*site).showSearch)))
		for _, sec := range s.sections() {
			sec.routes(s, r)
		}
	})
}

// routes mounts the pages of a section, for those who may see it.
func (sec section) routes(s *site, r chi.Router) {
	r.Get(sec.Path, s.page(s.seen(sec, sec.show)))
	for path, h := range sec.more {
		r.Get(path, s.page(s.seen(sec, h)))
	}
	for path, h := range sec.post {
		r.Post(path, s.page(s.sent(sec, h)))
	}
}
