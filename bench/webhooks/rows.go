package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
)

// event is what everything subscribes to.
const event = "stream.started"

// throughput publishes events one transaction each, from eight publishers, and
// waits until the last one has arrived: publishing, queue, log and receiver are
// all in the figure.
func throughput(ctx context.Context, s *stack, r *receiver, o options) error {
	err := s.subscribe(ctx, s.account, o.endpoints, func(i int) string { return fmt.Sprintf("%s/fast/%d", r.URL, i) })
	if err != nil {
		return err
	}
	events := o.deliveries / o.endpoints
	begin := time.Now()
	if err := s.publishMany(ctx, events, 8, func(int) string { return s.account }); err != nil {
		return err
	}
	published := time.Since(begin)
	if err := r.wait(ctx, events*o.endpoints); err != nil {
		return err
	}
	all := time.Since(begin)
	fmt.Printf("throughput: %d deliveries to %d endpoints in %.2f s: %.0f deliveries/s (all published after %.2f s)\n",
		events*o.endpoints, o.endpoints, all.Seconds(), float64(events*o.endpoints)/all.Seconds(), published.Seconds())
	return nil
}

// single is throughput where each event has one subscriber: 100 accounts with
// one endpoint each, so that every delivery pays for a transaction of its own.
func single(ctx context.Context, s *stack, r *receiver, o options) error {
	accounts, err := s.addAccounts(ctx, 100)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		if err := s.subscribe(ctx, a, 1, func(int) string { return fmt.Sprintf("%s/fast/%d", r.URL, i) }); err != nil {
			return err
		}
	}
	n, begin := o.deliveries/2, time.Now()
	if err := s.publishMany(ctx, n, 32, func(i int) string { return accounts[i%len(accounts)] }); err != nil {
		return err
	}
	published := time.Since(begin)
	if err := r.wait(ctx, n); err != nil {
		return err
	}
	all := time.Since(begin)
	fmt.Printf("single: %d events with one delivery each in %.2f s: %.0f deliveries/s (all published after %.2f s)\n",
		n, all.Seconds(), float64(n)/all.Seconds(), published.Seconds())
	return nil
}

// publishMany publishes n events from some publishers at the same time, the
// i-th one of account(i).
func (s *stack) publishMany(ctx context.Context, n, publishers int, account func(i int) string) error {
	var wg sync.WaitGroup
	errs := make(chan error, publishers)
	for p := range publishers {
		wg.Go(func() {
			for i := p; i < n; i += publishers {
				if err := s.publish(ctx, account(i), fmt.Sprintf("evt_%d", i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// publish stores one event in a transaction of its own, as a product would.
func (s *stack) publish(ctx context.Context, account, id string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return s.service.EmitTx(ctx, tx, events.Event{ID: id, Account: account, Type: event, StreamID: "strm_1",
			Data: map[string]any{"title": "A title", "protocol": "webrtc", "ingest_endpoint": "https://ingest.example.com/whip"}})
	})
}

// fanout publishes one event that 10,000 subscriptions want.
func fanout(ctx context.Context, s *stack, r *receiver, _ options) error {
	const n = 10_000
	err := s.subscribe(ctx, s.account, n, func(i int) string { return fmt.Sprintf("%s/fast/%d", r.URL, i) })
	if err != nil {
		return err
	}
	for i := range 3 {
		begin := time.Now()
		if err := s.publish(ctx, s.account, fmt.Sprintf("evt_fan_%d", i)); err != nil {
			return err
		}
		committed := time.Since(begin)
		if err := r.wait(ctx, n); err != nil {
			return err
		}
		fmt.Printf("fanout %d: event, %d deliveries and jobs committed in %d ms; the last delivery arrived after %.2f s\n",
			i+1, n, committed.Milliseconds(), time.Since(begin).Seconds())
	}
	return nil
}
