package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// receiver is an HTTP server that stands for every endpoint: /fast/N answers
// at once, /hang/N never.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]time.Time // event id and path → first arrival
	more chan struct{}        // one for each first arrival
}

func newReceiver() *receiver {
	r := &receiver{seen: map[string]time.Time{}, more: make(chan struct{}, 1<<20)}
	r.Server = httptest.NewServer(r)
	return r
}

// ServeHTTP notes the arrival and answers as the path says.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	if strings.HasPrefix(req.URL.Path, "/hang/") {
		<-req.Context().Done()
		return
	}
	key := req.Header.Get("X-Service-Event-Id") + req.URL.Path
	r.mu.Lock()
	if _, again := r.seen[key]; !again {
		r.seen[key] = time.Now()
		r.more <- struct{}{}
	}
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// wait returns when n further requests have arrived for the first time.
func (r *receiver) wait(ctx context.Context, n int) error {
	for range n {
		select {
		case <-r.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// latencies compares arrivals with when each event was published.
func (r *receiver) latencies(published map[string]time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for key, at := range r.seen {
		id, _, _ := strings.Cut(key, "/")
		if from, ok := published[id]; ok {
			all = append(all, at.Sub(from))
		}
	}
	return all
}
