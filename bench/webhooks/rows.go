package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
)

const event = "stream.started"

// throughput publishes events one transaction each, from eight publishers, and
// waits until the last one has arrived: publishing, queue, log and receiver are
// all in the figure.
func throughput(ctx context.Context, s *stack, r *receiver, o options) error {
	each := 10
	err := s.subscribe(ctx, o.endpoints, event, func(i int) string { return fmt.Sprintf("%s/fast/%d", r.base, i) })
	if err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, `UPDATE webhook_subscriptions SET events = ARRAY['stream.started'], status = 'paused' WHERE false`); err != nil {
		return err
	}
	_ = each
	events := o.deliveries / o.endpoints
	begin := time.Now()
	if err := s.publishMany(ctx, events, 8, nil); err != nil {
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

// publishMany publishes n events from some publishers; at, if not nil, gets
// when each was committed.
func (s *stack) publishMany(ctx context.Context, n, publishers int, at *times) error {
	var wg sync.WaitGroup
	errs := make(chan error, publishers)
	for p := range publishers {
		wg.Go(func() {
			for i := p; i < n; i += publishers {
				if err := s.publish(ctx, fmt.Sprintf("evt_%d", i), at); err != nil {
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

func (s *stack) publish(ctx context.Context, id string, at *times) error {
	begin := time.Now()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return s.service.EmitTx(ctx, tx, controlplane.Event{ID: id, Account: s.account, Type: event, StreamID: "strm_1",
			Data: map[string]any{"title": "A title", "protocol": "webrtc", "ingest_endpoint": "https://ingest.example.com/whip"}})
	})
	if at != nil {
		at.set(id, begin)
	}
	return err
}

type times struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (t *times) set(id string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[id] = at
}

// fanout publishes one event that 10,000 subscriptions want.
func fanout(ctx context.Context, s *stack, r *receiver, _ options) error {
	const n = 10_000
	err := s.subscribe(ctx, n, event, func(i int) string { return fmt.Sprintf("%s/fast/%d", r.base, i) })
	if err != nil {
		return err
	}
	for i := range 3 {
		begin := time.Now()
		if err := s.publish(ctx, fmt.Sprintf("evt_fan_%d", i), nil); err != nil {
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

func hanging(ctx context.Context, s *stack, r *receiver, o options) error {
	return nil
}
