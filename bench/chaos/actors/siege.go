package actors

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/hostile"
)

// Lateness reads from the database when each run of an account's schedules was due
// that was due since a time, by execution, and how late the first attempts of the
// webhooks were of events since then.
type Lateness func(ctx context.Context, account string, since time.Time) (due map[string]time.Time, webhooks []time.Duration, err error)

// Rates of a siege, a second.
const (
	ownRate     = 2   // of the others, of each thing
	hostileRate = 200 // of the hostile tenant, of each attack
	gentleRate  = 20
)

// Siege measures how late others are while all is quiet, and for as long beside a
// tenant that pays attention to no limit.
func (w *World) Siege(ctx context.Context, length time.Duration, late Lateness) (s audit.Siege, err error) {
	before := w.Fleet.Starts()
	quiet, err := w.neighbour(ctx, length, late)
	if err != nil {
		return s, err
	}
	silent := hostile.NewReceiver()
	defer silent.Close()
	t, err := w.hostile(ctx, silent.URL)
	if err != nil {
		return s, err
	}
	attack, end := context.WithCancel(ctx)
	defer end()
	attacked := make(chan map[string]hostile.Count, 1)
	go func() { attacked <- t.Run(attack) }()
	w.sleep(ctx, length/4) // until all it can take is taken
	beset, err := w.neighbour(ctx, length, late)
	end()
	for _, c := range <-attacked {
		s.Attempts += c.Served + c.Refused + c.Failed + c.Unanswered
	}
	if err != nil {
		return s, err
	}
	for i := range quiet {
		s.Kinds = append(s.Kinds, audit.Beside{What: quiet[i].What, Quiet: quiet[i].Beset, Beset: beset[i].Beset, Failed: beset[i].Failed})
	}
	s.Starts = w.Fleet.Starts()
	for name, n := range before {
		s.Starts[name] -= n
	}
	return s, nil
}

// hostile makes the tenant with its account. Its requests come from an address of
// its own and take no wire: what it is refused for is not held against others.
func (w *World) hostile(ctx context.Context, silent string) (*hostile.Tenant, error) {
	var made struct{ ID, Key string }
	if _, _, err := w.Fleet.Admin(ctx, w.Client, 0, http.MethodPost, "accounts", "", map[string]string{"name": "Hostile", "plan": "local"}, &made); err != nil {
		return nil, err
	}
	path := "accounts/" + made.ID + "/keys"
	if _, _, err := w.Fleet.Admin(ctx, w.Client, 0, http.MethodPost, path, "", map[string]any{"name": "hostile", "scopes": []string{"*"}}, &made); err != nil {
		return nil, err
	}
	gateway, runtime := w.Fleet.Straight(0)
	t := &hostile.Tenant{Gateway: gateway, Runtime: runtime, Key: made.Key, Silent: silent, Rate: hostileRate, Most: 512,
		Client: hostile.From("127.0.0.2", w.Client.Transport.(*http.Transport))}
	schedules, subscriptions := 100, 100
	if w.Slow {
		t.Rate, schedules, subscriptions = gentleRate, 10, 10
		t.Without = []string{"sign-in"} // until they are refused, guesses cost the hashes that a busy machine has no time for
	}
	err := w.Fleet.Await(ctx, func() error { // until the edge has its key
		if a := w.ask(ctx, request{method: http.MethodGet, url: gateway + "/v1/streams?limit=1", key: t.Key}); !a.ok() {
			return fmt.Errorf("the hostile tenant's key is answered %d", a.status)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, t.Prepare(ctx, schedules, subscriptions)
}

// neighbour has the first account do a few things a second, and says how late they
// were.
func (w *World) neighbour(ctx context.Context, length time.Duration, late Lateness) ([]audit.Beside, error) {
	began := time.Now()
	post, signIn := audit.Beside{What: "a POST with an Idempotency-Key"}, audit.Beside{What: "a sign-in"}
	var mu sync.Mutex
	var group sync.WaitGroup
	do := func(b *audit.Beside, r request) answer {
		due := time.Now()
		a := w.ask(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		b.Beset = append(b.Beset, time.Since(due))
		if !a.ok() {
			b.Failed++
		}
		return a
	}
	tick := time.NewTicker(time.Second / ownRate)
	defer tick.Stop()
	for time.Since(began) < length && ctx.Err() == nil {
		gateway, name := w.edge().Gateway, w.name("neighbour")
		group.Go(func() {
			a := do(&post, request{method: http.MethodPost, url: gateway + "/v1/streams", key: w.key, repeat: rand.Text(), body: map[string]any{"title": name, "protocol": "rtmp"}})
			var made struct{ ID string }
			if a.ok() && a.into(&made) == nil { // its end is an event
				w.ask(ctx, request{method: http.MethodDelete, url: gateway + "/v1/streams/" + made.ID, key: w.key})
			}
		})
		group.Go(func() {
			do(&signIn, request{method: http.MethodPost, url: gateway + "/v1/auth/sessions",
				body: map[string]any{"email": w.Fleet.Dev["SLUICE_USER_EMAIL"], "password": w.Fleet.Dev["SLUICE_USER_PASSWORD"]}})
		})
		group.Go(func() {
			w.ask(ctx, request{method: http.MethodPost, url: gateway + "/v1/events/schedules", key: w.key, body: map[string]any{"name": name, "type": "webhook",
				"schedule": map[string]any{"type": "one_time", "executeAt": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)},
				"webhook":  map[string]any{"url": w.Fleet.Hooks + "/calls"}}})
		})
		<-tick.C
	}
	group.Wait()
	w.sleep(ctx, 4*time.Second) // until the last schedule was due, and has run
	due, webhooks, err := late(ctx, w.account, began)
	return []audit.Beside{post, signIn, w.called(due), {What: "a webhook", Beset: webhooks}}, err
}

// called is how late the receiver was first called for runs; one that it was not
// called for has failed.
func (w *World) called(due map[string]time.Time) audit.Beside {
	b := audit.Beside{What: "a run of a schedule"}
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	for _, c := range w.receiver.calls {
		if at, ours := due[c.Execution]; ours {
			b.Beset = append(b.Beset, c.At.Sub(at))
			delete(due, c.Execution) // further calls are retries
		}
	}
	b.Failed = len(due)
	return b
}
