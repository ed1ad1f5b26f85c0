// Package hostile is a tenant that pays attention to no limit: with an account of
// its own it asks for as much as it can get, of everything that tenants share, and
// lets all that calls out wait for a receiver that never answers. Everything it does
// is bounded in number and goes to this machine.
package hostile

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tenant is one.
type Tenant struct {
	Gateway, Runtime string // base URLs of an edge
	Key              string // of its account
	Silent           string // URL of a receiver that never answers
	Client           *http.Client
	Rate             int      // attempts a second of each attack
	Most             int      // attempts of each attack under way at once; 0: 128
	Without          []string // names of attacks that it leaves out

	schedules, subscriptions []string // ids, by Prepare

	mu     sync.Mutex
	counts map[string]Count
}

// Count is how attempts of one attack were answered.
type Count struct{ Served, Refused, Failed, Unanswered int }

// Receiver takes every call and answers none before it is closed.
type Receiver struct {
	*httptest.Server
	over chan struct{}
}

// NewReceiver starts one.
func NewReceiver() Receiver {
	over := make(chan struct{})
	return Receiver{httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})), over}
}

// Close ends every call.
func (r Receiver) Close() {
	close(r.over)
	r.CloseClientConnections()
	r.Server.Close()
}

// From returns a client whose address is ip, one of this machine's: what it is
// refused for is not held against others.
func From(ip string, base *http.Transport) *http.Client {
	t := base.Clone()
	t.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext
	t.MaxIdleConnsPerHost = 256
	return &http.Client{Transport: t, Timeout: time.Minute}
}

// Prepare makes a schedule for each minute and a subscription, of each so many,
// that lead to the silent receiver.
func (t *Tenant) Prepare(ctx context.Context, schedules, subscriptions int) error {
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed error
	room := make(chan struct{}, 8)
	make := func(n int, path string, body func(int) string, ids *[]string) {
		for i := range n {
			group.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				id, err := t.create(ctx, path, body(i))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
					return
				}
				*ids = append(*ids, id)
			})
		}
	}
	make(schedules, "/v1/events/schedules", func(i int) string {
		return fmt.Sprintf(`{"name":"flood %d %s","type":"webhook","schedule":{"type":"recurring","cron":"* * * * *"},"overlapPolicy":"allow",
			"webhook":{"url":"%s/run","retryPolicy":{"maxRetries":10,"initialDelaySeconds":1,"backoffMultiplier":1}}}`, i, rand.Text(), t.Silent)
	}, &t.schedules)
	make(subscriptions, "/v1/webhooks", func(i int) string {
		return fmt.Sprintf(`{"url":"%s/hook/%d","events":["schedule.*"],"secret":"a secret of a hostile tenant"}`, t.Silent, i)
	}, &t.subscriptions)
	group.Wait()
	return failed
}

// Run attacks until ctx ends, and says how that was answered.
func (t *Tenant) Run(ctx context.Context) map[string]Count {
	t.mu.Lock()
	t.counts = map[string]Count{}
	t.mu.Unlock()
	most := t.Most
	if most == 0 {
		most = 128
	}
	var group sync.WaitGroup
	for _, a := range t.attacks() {
		if slices.Contains(t.Without, a.name) {
			continue
		}
		group.Go(func() { t.repeat(ctx, a, most) })
	}
	group.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// repeat makes attempts of one attack at its rate, as long as not too many are
// under way.
func (t *Tenant) repeat(ctx context.Context, a attack, most int) {
	tick := time.NewTicker(time.Duration(a.rarer) * time.Second / time.Duration(t.Rate))
	defer tick.Stop()
	room := make(chan struct{}, most)
	var group sync.WaitGroup
	defer group.Wait()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case room <- struct{}{}:
			group.Go(func() {
				defer func() { <-room }()
				t.attempt(ctx, a, n)
			})
		default:
		}
	}
}

// attempt makes one and counts its answer; what the end of the run cut off is not
// counted.
func (t *Tenant) attempt(ctx context.Context, a attack, n int) {
	r, err := a.request(ctx, n)
	if err != nil {
		return
	}
	status := t.do(r)
	if ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[a.name]
	switch {
	case status == 0:
		c.Unanswered++
	case status < 400:
		c.Served++
	case status < 500:
		c.Refused++
	default:
		c.Failed++
	}
	t.counts[a.name] = c
}

// do returns the status of the whole answer, 0: none.
func (t *Tenant) do(r *http.Request) int {
	res, err := t.Client.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// create makes a thing and returns its id.
func (t *Tenant) create(ctx context.Context, path, body string) (string, error) {
	r, err := t.post(ctx, t.Gateway+path, body, false)
	if err != nil {
		return "", err
	}
	res, err := t.Client.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || res.StatusCode >= 300 {
		return "", fmt.Errorf("POST %s: %d %s %w", path, res.StatusCode, text, err)
	}
	_, rest, _ := strings.Cut(string(text), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id, nil
}

// post is a request with the tenant's key, once or each time with a key of its own
// for repetitions.
func (t *Tenant) post(ctx context.Context, url, body string, keyed bool) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+t.Key)
	if keyed {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	return r, nil
}
