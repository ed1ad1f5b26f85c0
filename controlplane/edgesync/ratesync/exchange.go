package ratesync

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// idleWait is how long an edge without anything to tell waits for others that
// have something.
const idleWait = time.Second

// maxName bounds an edge's name in bytes.
const maxName = 200

// Config says how an Exchange works.
type Config struct {
	// Pool is through which replicas pass reports on; nil: there is one replica.
	Pool *pgxpool.Pool
	// Respond writes errors; its zero value will do.
	Respond httpapi.Adapter
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Exchange serves the exchange of counts to edges.
type Exchange struct {
	config Config
	table  *Table
	relay  *relay
}

// New returns an Exchange.
func New(c Config) *Exchange {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	x := &Exchange{config: c, table: NewTable()}
	if c.Pool != nil {
		x.relay = &relay{pool: c.Pool, table: x.table, now: x.millis, log: c.Log, fresh: map[string]queuedReport{}, wake: make(chan struct{}, 1)}
		x.table.ended, x.table.read = x.relay.queueEnded, 0
	}
	return x
}

// Run passes reports on to the other replicas until ctx ends. Without it edges
// hear only of those that speak to this replica.
func (x *Exchange) Run(ctx context.Context) {
	if x.relay != nil {
		x.relay.run(ctx)
	}
}

// ServeHTTP takes a report (see sharedlimit.Report) by POST from the edge that
// edgeapi.EdgeHeader names and answers what the others have counted (sharedlimit.Answer). As
// long as nobody has counted anything it holds the answer back, for a second at
// most. The caller has made sure that it is an edge who speaks.
func (x *Exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.config.Respond.Handle(x.serve)(w, r)
}

func (x *Exchange) serve(w http.ResponseWriter, r *http.Request) error {
	name := r.Header.Get(edgeapi.EdgeHeader)
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sharedlimit.MaxBytes))
	report, ok := sharedlimit.ParseReport(raw)
	if err != nil || !ok || name == "" || len(name) > maxName || isEnded(name) {
		return apierror.Invalid([]decision.Detail{{Field: "body", Issue: "is not a report", Expected: "a report of an edge that " + http.CanonicalHeaderKey(edgeapi.EdgeHeader) + " names"}})
	}
	busy := x.table.Busy()
	if x.table.Take(name, report, x.millis()) && x.relay != nil {
		x.relay.queue(name, report.Told, raw)
	}
	if report.Idle() && !x.waitUntil(r.Context(), busy) {
		return nil // the edge went away
	}
	body := x.table.Answer(name, x.millis()).Append(nil)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		x.config.Log.DebugContext(r.Context(), "counts: edge went away", "cause", err)
	}
	return nil
}

// waitUntil waits until somebody is busy, or a while; false: ctx ended.
func (x *Exchange) waitUntil(ctx context.Context, busy <-chan struct{}) bool {
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	select {
	case <-busy:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

func (x *Exchange) millis() int64 { return x.config.Now().UnixMilli() }
