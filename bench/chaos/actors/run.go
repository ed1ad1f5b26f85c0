package actors

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
)

// Prepare makes what the actors need while everything is well.
func (w *World) Prepare(ctx context.Context) error {
	if err := w.prepare(ctx); err != nil {
		return err
	}
	if err := w.meter(ctx); err != nil {
		return err
	}
	if err := w.quote(ctx); err != nil {
		return err
	}
	if err := w.limit(ctx); err != nil {
		return err
	}
	if !w.subscribe(ctx) {
		return errors.New("the receiver's subscription was refused")
	}
	for range 3 {
		w.minutely(ctx)
	}
	return nil
}

// Run lets all actors act until ctx ends, and waits until they have finished
// what they were at.
func (w *World) Run(ctx context.Context) error {
	var group sync.WaitGroup
	act := func(pause time.Duration, f func(context.Context)) {
		group.Go(func() { w.every(ctx, pause, f) })
	}
	for _, e := range w.Fleet.Edges {
		read, err := w.reader(e)
		if err != nil {
			return err
		}
		act(100*time.Millisecond, read)
		act(150*time.Millisecond, w.prober(e))
		if w.Drill {
			act(20*time.Millisecond, func(ctx context.Context) { w.steady(ctx, e) })
		}
	}
	for range 3 {
		act(300*time.Millisecond, w.stream)
		act(500*time.Millisecond, w.chat)
		act(time.Second, w.once)
	}
	for range 2 {
		act(700*time.Millisecond, w.buy)
		act(time.Second, w.keyLife)
		act(time.Second, w.tool)
		act(2*time.Second, w.passOn)
		act(500*time.Millisecond, w.tooOften)
	}
	act(10*time.Second, w.Flap)
	<-ctx.Done()
	group.Wait()
	return nil
}

// Seen is what the actors and the receiver saw. end is when schedules need not
// have run any more.
func (w *World) Seen(end time.Time) audit.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	s := w.seen
	s.Hooks, s.Calls = w.receiver.hooks, w.receiver.calls
	s.Price, s.Funds, s.Outages = w.pay.price, funds, w.Fleet.Outages()
	s.Skews, s.Faults, s.Busy = w.Fleet.Skews(), w.Fleet.Struck(), w.Slow
	handOver := handOver
	if w.Slow {
		handOver, s.Grace = 5*handOver, 3*audit.Grace
	}
	s.Schedules = slices.Clone(s.Schedules) // what is owed is asked for, not kept
	for i := range s.Schedules {
		s.Schedules[i] = s.Schedules[i].Until(end)
	}
	spans := map[string][]audit.Span{}
	for _, o := range s.Outages {
		for _, e := range w.Fleet.Edges {
			if o.Edge == "" || o.Edge == e.Name {
				spans[e.Name] = append(spans[e.Name], o.Span)
			}
		}
	}
	for _, e := range w.Fleet.Edges {
		m := *w.meters[e.Name]
		m.AtRisk = audit.AtRisk(w.served[e.Name], w.Fleet.Kills(e.Name), spans[e.Name], handOver)
		s.Meters = append(s.Meters, m)
	}
	s.Tokens.AtRisk = tokensOfOne * audit.AtRisk(w.chatted, w.Fleet.Kills("runtime"), spans[w.Fleet.Edges[0].Name], handOver)
	return s
}

// handOver is how long a process may keep what it has counted, where nothing is broken.
const handOver = 2 * time.Second

// Look asks every edge, when all is quiet, whether it holds what is stored.
func (w *World) Look(ctx context.Context) error {
	d, _, err := w.document(ctx, 0)
	if err != nil {
		return err
	}
	routes, _ := d["routes"].([]any)
	mapped := len(without(routes)) != len(routes)
	w.again(ctx)
	for _, e := range w.Fleet.Edges {
		for _, k := range w.keys {
			if k.id == "" || k.unsure {
				continue
			}
			want := "200"
			if !k.revoked.IsZero() {
				want = "401"
			}
			a := w.ask(ctx, request{method: http.MethodGet, url: e.Gateway + "/v1/streams?limit=1", key: k.text})
			w.final(e, "the answer to "+k.name, want, fmt.Sprint(a.status))
		}
		a := w.ask(ctx, request{method: http.MethodGet, url: e.Gateway + flapping, key: w.key})
		w.final(e, "the flapping route is mapped", fmt.Sprint(mapped), fmt.Sprint(a.code != "ROUTE_NOT_MAPPED"))
	}
	return nil
}

// Finals are the answers that Look got.
func (w *World) Finals() []audit.Final {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Finals
}

func (w *World) final(e fleet.Edge, what, want, got string) {
	w.note(func(s *audit.Seen) {
		s.Finals = append(s.Finals, audit.Final{Edge: e.Name, What: what, Want: want, Got: got})
	})
}

// Current says whether every edge is said to hold the newest configuration.
func (w *World) Current(ctx context.Context) error {
	var fleet struct {
		Data []struct {
			ID      string
			Current bool
		}
	}
	if _, _, err := w.Fleet.Admin(ctx, w.Client, 0, http.MethodGet, "edges", "", nil, &fleet); err != nil {
		return err
	}
	n := 0
	for _, e := range fleet.Data {
		if e.Current {
			n++
		}
	}
	if n != len(w.Fleet.Edges) {
		return fmt.Errorf("%d of %d edges are current", n, len(w.Fleet.Edges))
	}
	return nil
}

// Resend asks for the webhooks that wait for a retry to be sent at once, as a
// customer would. ids are of deliveries.
func (w *World) Resend(ctx context.Context, subscription string, ids []string) {
	for _, id := range ids {
		w.ask(ctx, request{method: http.MethodPost, url: w.Fleet.Edges[0].Gateway + "/v1/webhooks/" + subscription + "/deliveries/" + id + "/resend", key: w.key})
	}
}
