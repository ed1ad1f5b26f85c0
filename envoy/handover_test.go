package envoy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// hammer asks the gateway all the time, over new connections and kept ones, and
// returns what went wrong once it is stopped.
func (b *edgeBed) hammer(t *testing.T) (stop func() []string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failures []string
	ctx, cancel := context.WithCancel(t.Context())
	for _, client := range []*http.Client{
		{Transport: &http.Transport{DisableKeepAlives: true}},
		{Transport: &http.Transport{}},
	} {
		wg.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Get("http://" + b.edge.cfg.Bootstrap.GatewayAddr + "/v1/streams")
				if err == nil {
					res.Body.Close()
					if res.StatusCode != http.StatusTeapot {
						err = fmt.Errorf("status %d", res.StatusCode)
					}
				}
				if err != nil {
					mu.Lock()
					failures = append(failures, err.Error())
					mu.Unlock()
				}
			}
		})
	}
	return func() []string { cancel(); wg.Wait(); return failures }
}

// awaitEpoch waits until the Envoy of an epoch is the one that answers.
func (b *edgeBed) awaitEpoch(t *testing.T, epoch int) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); b.edge.admin.epoch(t.Context()) != epoch; {
		if time.Now().After(deadline) {
			t.Fatalf("no Envoy of epoch %d", epoch)
		}
	}
}

// Envoys take over from each other under load, more often than two can live side
// by side, and no request fails.
func TestHotRestartDropsNothing(t *testing.T) {
	t.Parallel()
	b := newEdgeBed(t)
	b.cp.publish(t, b.edge.cfg.Bootstrap)
	<-b.edge.Ready()
	b.await(t, http.StatusTeapot)
	stop := b.hammer(t)
	for epoch := 1; epoch <= 3; epoch++ {
		b.edge.Reload()
		b.awaitEpoch(t, epoch)
	}
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed, first: %s", len(failures), failures[0])
	}
}

// A new Envoy that does not get as far as to listen leaves the old one in place.
func TestHotRestartThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	b := newEdgeBed(t)
	b.cp.publish(t, b.edge.cfg.Bootstrap)
	<-b.edge.Ready()
	b.await(t, http.StatusTeapot)
	stop := b.hammer(t)
	keysync := filepath.Join(b.edge.cfg.Dir, "wasm", "keysync.wasm")
	if err := os.WriteFile(keysync+".new", []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(keysync+".new", keysync); err != nil {
		t.Fatal(err)
	}
	b.edge.Reload()
	b.edge.Reload() // the second is taken when the first is over
	for deadline := time.Now().Add(waitTimeout); len(b.edge.reload) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the hot restart does not end")
		}
	}
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed, first: %s", len(failures), failures[0])
	}
}
