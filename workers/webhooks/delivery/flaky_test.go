package delivery_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// flaky is a connection that breaks now and then: before a statement reaches
// the server, or after the server has done it and before the answer is read.
type flaky struct {
	net.Conn
	broken *atomic.Int64
}

var errBroken = errors.New("the connection broke")

// one in so many reads and writes breaks the connection.
const oneIn = 40

func (f flaky) breaks() bool {
	if rand.IntN(oneIn) > 0 {
		return false
	}
	f.broken.Add(1)
	_ = f.Conn.Close()
	return true
}

func (f flaky) Write(b []byte) (int, error) {
	if f.breaks() {
		return 0, errBroken
	}
	return f.Conn.Write(b)
}

func (f flaky) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if err == nil && f.breaks() {
		return 0, errBroken
	}
	return n, err
}

// flakyPool connects to the same database as b, through flaky connections.
func flakyPool(t *testing.T, b bundle) (*pgxpool.Pool, *atomic.Int64) {
	t.Helper()
	broken := &atomic.Int64{}
	config := b.Pool.Config()
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return flaky{conn, broken}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, broken
}

// The connection to the database breaks at any point of opening and closing
// attempts, also between a commit and its confirmation. Jobs are run again, as
// workers do; in the end each event was delivered, each request is in the log,
// and each delivery that failed once has one retry and no more.
func TestDeliveriesSurviveBrokenConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.receiver.Answer(500)
	pool, broken := flakyPool(t, b)
	d := delivery.New(delivery.Config{
		DB: pool, Service: b.Service, Client: b.Client, Now: b.clock.Now, Random: func() float64 { return 0 },
		StoreTimeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	const events = 80
	b.EmitMany(events)
	b.runAll(d)
	if n := len(b.Jobs()); n != events {
		t.Fatalf("%d retries are queued for %d deliveries that failed", n, events)
	}
	b.receiver.Answer(204)
	b.clock.Set(b.Jobs()[events-1].At)
	b.runAll(d)
	list, err := b.Service.Deliveries(t.Context(), "acct_0000000000001", sub.ID, webhooks.DeliveryFilter{Status: "succeeded", Limit: events})
	if err != nil || len(list) != events || len(b.Jobs()) != 0 {
		t.Fatalf("%d of %d have succeeded, %d jobs are left, %v", len(list), events, len(b.Jobs()), err)
	}
	b.compareWithLog()
	if broken.Load() == 0 {
		t.Error("no connection broke: the test shows nothing")
	}
}

// runAll runs every job that is there, all at the same time, each until it
// ends without an error.
func (b bundle) runAll(d *delivery.Deliverer) {
	b.T.Helper()
	var wg sync.WaitGroup
	for _, j := range b.Jobs() {
		args := b.Take(j)
		wg.Go(func() {
			for {
				r, err := d.Attempt(b.T.Context(), args)
				if err == nil && r.Wait == 0 || b.T.Context().Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// compareWithLog fails the test if a request that arrived is not in the log.
func (b bundle) compareWithLog() {
	b.T.Helper()
	arrived := map[string]int{}
	for range len(b.receiver.Got) {
		arrived[(<-b.receiver.Got).Header.Get("X-Service-Event-Id")]++
	}
	for id, n := range arrived {
		var logged int
		err := b.Pool.QueryRow(b.T.Context(), `SELECT count(*) FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
			JOIN account_events e ON e.seq = d.event_seq WHERE e.id = $1`, id).Scan(&logged)
		if err != nil || logged < n {
			b.T.Errorf("%s arrived %d times, the log has %d attempts, %v", id, n, logged, err)
		}
	}
}
