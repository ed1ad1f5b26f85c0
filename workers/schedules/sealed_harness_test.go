package schedules_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

func boxOf(t *testing.T, keys ...string) *secretbox.Box {
	t.Helper()
	for i := range keys {
		keys[i] = strings.Repeat(keys[i], secretbox.MinKey)
	}
	box, err := secretbox.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// with is a process over the same database with another box; with none it stores as
// releases of before do.
func (b *bundle) with(box *secretbox.Box, log *slog.Logger) *bundle {
	c := b.service.Config
	c.Box = box
	if log != nil {
		c.Log = log
	}
	other := *b
	other.service = schedules.New(c)
	other.runner.Store = other.service
	return &other
}

// hookReceiver takes calls and tells the headers of the last.
type hookReceiver struct {
	url string

	mu   sync.Mutex
	got  http.Header
	seen int
}

func newReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = req.Header
		r.seen++
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// last returns the headers of the last call, and how many there were.
func (r *hookReceiver) last() (http.Header, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got, r.seen
}

// hooked is a definition that calls the receiver with a token.
func (r *hookReceiver) hooked(name string) definition.Definition {
	return definition.Definition{Name: name, Type: definition.TypeWebhook,
		Schedule: definition.Timing{Type: definition.Recurring, Cron: "0 9 * * *"},
		Webhook: &definition.Webhook{URL: r.url, Payload: []byte(`{"a":1}`),
			Headers: map[string]string{"Authorization": "Bearer hush-hush", "X-Kind": "kind-hush", "X-Stars": "***"}}}
}

func (b *bundle) put(d definition.Definition) string {
	b.t.Helper()
	made, err := b.service.Create(b.t.Context(), owner, d)
	if err != nil {
		b.t.Fatal(err)
	}
	return made.ID
}

// sends has a schedule run once, and fails unless the receiver is sent the token.
func (b *bundle) sends(r *hookReceiver, id, token string) {
	b.t.Helper()
	b.sendsBy(b, r, id, token)
}

// sendsBy is sends, with another process to do the work.
func (b *bundle) sendsBy(worker *bundle, r *hookReceiver, id, token string) {
	b.t.Helper()
	_, before := r.last()
	if _, err := b.service.Trigger(b.t.Context(), owner, id); err != nil {
		b.t.Fatal(err)
	}
	worker.work(id)
	got, seen := r.last()
	if seen != before+1 || got.Get("Authorization") != token || got.Get("X-Kind") != "kind-hush" || got.Get("X-Stars") != "***" {
		b.t.Errorf("%d calls, the last with %v; want %q", seen-before, got, token)
	}
}

// lyingOpen counts the schedules of which a token lies open.
func (b *bundle) lyingOpen() (n int) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), `SELECT count(*) FROM schedules s WHERE s::text LIKE '%hush%'`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// walk seals until there is nothing more to look at, and returns the number of steps.
func (b *bundle) walk() (steps int) {
	b.t.Helper()
	for {
		more, err := b.service.SealHeaders(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if steps++; !more {
			return steps
		}
	}
}
