package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

var web = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// ask makes a request and returns the status and the body.
func ask(ctx context.Context, method, url, credential string, body any) (int, []byte, error) {
	a, err := harness.Ask(ctx, web, method, url, credential, body)
	if err != nil {
		return 0, nil, err
	}
	return a.StatusCode, a.Text, nil
}

// admin calls the admin API and decodes its answer into v, if that is not nil.
func (b *bed) admin(ctx context.Context, method, path string, body, v any) error {
	a, err := harness.Ask(ctx, web, method, b.Dev["SLUICE_ADMIN_URL"]+"/admin/v1"+path, b.Dev["SLUICE_ADMIN_KEY"], body)
	if err != nil {
		return err
	}
	return a.Into(v)
}

// everywhere returns when path has a status that ok likes at every edge, and how
// long after began that was. It asks all at once, again and again.
func (b *bed) everywhere(ctx context.Context, began time.Time, path, key string, ok func(int) bool) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make([]error, len(b.edges))
	for i, base := range b.edges {
		wg.Go(func() { errs[i] = reaches(ctx, 0, base+path, key, ok) })
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

// askEvery is the pause between two questions whether a change of a route is there.
const askEvery = 4 * time.Millisecond

// inTurn is everywhere for what takes longer: it asks the next edge when the one
// before knows, with pauses, so as not to take the cores from those who bring the
// change about.
func (b *bed) inTurn(ctx context.Context, began time.Time, path, key string, ok func(int) bool) (time.Duration, error) {
	for _, base := range b.edges {
		if err := reaches(ctx, askEvery, base+path, key, ok); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// reaches returns when url has a status that ok likes.
func reaches(ctx context.Context, pause time.Duration, url, key string, ok func(int) bool) error {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(pause) {
		status, _, err := ask(ctx, http.MethodGet, url, key, nil)
		if err != nil || ok(status) {
			return err
		}
	}
	return errors.New("it does not reach " + url)
}

func is(want int) func(int) bool { return func(status int) bool { return status == want } }

// keys makes and revokes keys that lack the scope of the route that is asked for:
// an edge that knows one answers 403 by itself, and 401 if not.
func (b *bed) keys(ctx context.Context, rounds int) (made, revoked []time.Duration, err error) {
	for range rounds {
		status, raw, err := ask(ctx, http.MethodPost, b.edges[0]+"/v1/auth/keys", b.Dev["SLUICE_SESSION_TOKEN"],
			map[string]any{"name": "bench", "scopes": []string{"clips:write"}, "expires_in_days": 1})
		began := time.Now()
		var k struct{ ID, Key string }
		if err := errors.Join(err, json.Unmarshal(raw, &k)); err != nil || status != http.StatusCreated {
			return nil, nil, fmt.Errorf("make a key: %d %s: %w", status, raw, err)
		}
		d, err := b.everywhere(ctx, began, "/v1/streams", k.Key, is(http.StatusForbidden))
		if err != nil {
			return nil, nil, err
		}
		made = append(made, d)
		status, raw, err = ask(ctx, http.MethodDelete, b.edges[0]+"/v1/auth/keys/"+k.ID, b.Dev["SLUICE_SESSION_TOKEN"], nil)
		began = time.Now()
		if err != nil || status != http.StatusNoContent {
			return nil, nil, fmt.Errorf("revoke a key: %d %s: %w", status, raw, err)
		}
		if d, err = b.everywhere(ctx, began, "/v1/streams", k.Key, is(http.StatusUnauthorized)); err != nil {
			return nil, nil, err
		}
		revoked = append(revoked, d)
	}
	return made, revoked, nil
}

// route is the one that is changed: its path is another each time. Nothing
// answers behind it.
func route(n int) map[string]any {
	return map[string]any{"name": "bench.0", "methods": []string{"GET"}, "path": fmt.Sprintf("/v1/bench/variant%d", n),
		"product": "bench0", "auth": []string{"key"}, "scope": "streams:read"}
}

// document adds products and routes to the default document.
func (b *bed) document(ctx context.Context, routes int) error {
	var v struct{ Document map[string]any }
	if err := b.admin(ctx, "GET", "/config", nil, &v); err != nil {
		return err
	}
	d := v.Document
	products, list := d["products"].([]any), d["routes"].([]any)
	for i := range max(1, routes/40) {
		p := map[string]any{"name": fmt.Sprintf("bench%d", i), "upstreams": []any{map[string]any{"address": fmt.Sprintf("127.0.0.1:%d", 1+i)}}}
		if i == 0 {
			p["retries"] = 0 // nobody is there: the route that is changed shall say so at once
		}
		products = append(products, p)
	}
	list = append(list, route(0))
	for i := 1; i < routes; i++ {
		r := route(0)
		r["name"], r["path"] = fmt.Sprintf("bench.%d", i), fmt.Sprintf("/v1/bench%d/{id}/part%d", i/20, i)
		r["product"] = fmt.Sprintf("bench%d", i%max(1, routes/40))
		list = append(list, r)
	}
	d["products"], d["routes"], d["anonymous_per_minute"] = products, list, 1_000_000_000
	return b.admin(ctx, "PUT", "/config", d, nil)
}

// routes changes a route again and again under a light load, which must not
// notice.
func (b *bed) routes(ctx context.Context, changes int) error {
	var calls, failed atomic.Int64
	steady, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, base := range b.edges {
		wg.Go(func() {
			for tick := time.NewTicker(20 * time.Millisecond); steady.Err() == nil; <-tick.C {
				calls.Add(1)
				if status, _, err := ask(ctx, http.MethodGet, base+"/v1/streams?limit=1", b.Dev["SLUICE_API_KEY"], nil); err != nil || status != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	var answered, took []time.Duration
	before := spent()
	for n := 1; n <= changes; n++ {
		began := time.Now()
		if err := b.admin(ctx, "PUT", "/routes/bench.0", route(n), nil); err != nil {
			stop()
			return err
		}
		answered = append(answered, time.Since(began))
		d, err := b.inTurn(ctx, began, fmt.Sprintf("/v1/bench/variant%d", n), b.Dev["SLUICE_API_KEY"],
			func(status int) bool { return status != http.StatusForbidden })
		if err != nil {
			stop()
			return err
		}
		took = append(took, d)
	}
	stop()
	wg.Wait()
	defer shares(before, changes)
	row("the call that changes a route is answered", answered)
	row("a changed route answers at all edges, from the call on", took)
	fmt.Printf("\n%d requests meanwhile, %d failed\n", calls.Load(), failed.Load())
	return nil
}

// starts measures an edge that starts with nothing, and again with what it saved.
func (b *bed) starts() error {
	env := maps.Clone(b.Env)
	for _, f := range []func() (map[string]string, error){
		func() (map[string]string, error) { return harness.ReadEnv(filepath.Join(b.Dir, "secrets.env")) },
		func() (map[string]string, error) {
			return harness.EdgeSettings("edge-fresh", filepath.Join(b.Dir, "fresh"))
		},
	} {
		more, err := f()
		if err != nil {
			return err
		}
		maps.Copy(env, more)
	}
	env["SLUICE_PUBLIC_URL"] = b.edges[0]
	for _, what := range []string{"an edge with nothing serves, from its start on", "the same with its saved state", "the same, and no control plane"} {
		if what == "the same, and no control plane" {
			env["SLUICE_XDS_ADDR"] = "127.0.0.1:1"
		}
		d, err := b.startOne(env)
		if err != nil {
			return err
		}
		row(what, []time.Duration{d})
	}
	return nil
}

// startOne runs an edge until it serves.
func (b *bed) startOne(env map[string]string) (time.Duration, error) {
	began := time.Now()
	edge, err := harness.Start(harness.Command(env, "edge"))
	if err != nil {
		return 0, err
	}
	err = harness.Until(func() error {
		status, _, err := ask(context.Background(), http.MethodGet, "http://"+env["SLUICE_GATEWAY_ADDR"]+"/v1/streams?limit=1", b.Dev["SLUICE_API_KEY"], nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the edge answers %d", status)
		}
		return err
	})
	took := time.Since(began)
	return took, errors.Join(err, edge.Stop())
}
