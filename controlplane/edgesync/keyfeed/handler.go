package keyfeed

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Config says how a Feed works.
type Config struct {
	Pool *pgxpool.Pool
	// Heard has a value when something was announced on Channel: see listen.Listener.
	Heard <-chan struct{}
	// Tokens are what edges may send as Bearer token; empty: none is asked for,
	// and the listener alone decides who reads.
	Tokens []string
	// Respond writes errors; its zero value will do.
	Respond httpapi.Adapter
	// Metrics is where the feed's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Log; nil: slog.Default.
	Log *slog.Logger

	pageRecords int // tests make pages small; 0: keytable.MaxPageRecords
}

// Feed serves the feed to edges. Run must be running, else polls only end by
// their time.
type Feed struct {
	config   Config
	notifier *notifier
	metrics  metrics
}

// New returns a Feed.
func New(c Config) *Feed {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.pageRecords == 0 {
		c.pageRecords = keytable.MaxPageRecords
	}
	return &Feed{config: c, notifier: newNotifier(), metrics: newMetrics(c.Metrics)}
}

// Run wakes waiting polls at changes until ctx ends. Then they are answered, so that a
// server can shut down at once. It must be called once.
func (f *Feed) Run(ctx context.Context) { f.notifier.run(ctx, f.config.Heard) }

// ServeHTTP answers GET Path?epoch=E&position=P&cursor=C&wait=W with one page
// (see keytable.Page). Without an epoch, or when the log does not reach back to
// the position, it is the first page of a snapshot. When there is no change it
// waits up to W seconds, then the page is empty. The server's write timeout
// must be longer than 30 seconds.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.config.Respond.Handle(f.serve)(w, r)
}

// serve answers one poll. An edge that goes away meanwhile is no failure.
func (f *Feed) serve(w http.ResponseWriter, r *http.Request) error {
	if err := f.authorize(r); err != nil {
		return err
	}
	q, err := parseRequest(r.URL.Query())
	if err != nil {
		return err
	}
	p, err := f.poll(r.Context(), q)
	if r.Context().Err() != nil {
		return nil // the edge went away
	}
	if err != nil {
		return err
	}
	body := p.Append(make([]byte, 0, 64+len(p.Records)))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err = w.Write(body)
	if err != nil {
		f.config.Log.DebugContext(r.Context(), "feed: edge went away", "cause", err)
	}
	return nil
}

// Guard lets those through to h who may read the feed.
func (f *Feed) Guard(h http.Handler) http.Handler {
	return f.config.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := f.authorize(r); err != nil {
			return err
		}
		h.ServeHTTP(w, r)
		return nil
	})
}

// authorize wants one of the tokens of Config, compared in constant time.
func (f *Feed) authorize(r *http.Request) error {
	if len(f.config.Tokens) == 0 {
		return nil
	}
	token, d := apikey.Bearer(r.Header.Get("Authorization"))
	known := 0
	for _, t := range f.config.Tokens {
		known |= subtle.ConstantTimeCompare([]byte(token), []byte(t))
	}
	if !d.OK() || known != 1 {
		return &apierror.Error{Code: decision.AuthRequired}
	}
	return nil
}

// poll returns the next page for q; it waits for one that is not empty as long
// as q allows.
func (f *Feed) poll(ctx context.Context, q request) (keytable.Page, error) {
	f.metrics.waiting.Inc()
	defer f.metrics.waiting.Dec()
	deadline := time.NewTimer(q.wait)
	defer deadline.Stop()
	for late := q.wait == 0; ; {
		changed := f.notifier.next()
		p, h, err := page(ctx, f.config.Pool, q, f.config.pageRecords)
		if err != nil || late || p.Snapshot || len(p.Records) > 0 {
			f.metrics.observe(p, h, err)
			return p, err
		}
		select {
		case <-changed:
		case <-deadline.C:
			late = true
		case <-f.notifier.stopped:
			late = true
		case <-ctx.Done():
			return p, nil // nobody reads the answer
		}
	}
}
