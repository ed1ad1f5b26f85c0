package schedules_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/controlplane/reseal"
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/schedules/definition"
	"sluice.dev/sluice/controlplane/webhooks/seal"
	"sluice.dev/sluice/migrations"
)

func boxOf(t *testing.T, keys ...string) *seal.Box {
	t.Helper()
	for i := range keys {
		keys[i] = strings.Repeat(keys[i], seal.MinKey)
	}
	box, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// with is a process over the same database with another box; with none it stores as
// releases of before do.
func (b *bundle) with(box *seal.Box, log *slog.Logger) *bundle {
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
	made, err := b.service.Create(b.t.Context(), owner, d, "")
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
	if _, err := b.service.Trigger(b.t.Context(), owner, id, ""); err != nil {
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

func TestHeadersAreStoredSealed(t *testing.T) {
	t.Parallel()
	b, r := setup(t), newReceiver(t)
	id := b.put(r.hooked("a"))
	path := "/v1/events/schedules/" + id
	for _, c := range []struct{ patch, token string }{
		{`{"description":"d"}`, "Bearer hush-hush"},
		{`{"webhook":{"headers":{"Authorization":"***","X-Kind":"***"}}}`, "Bearer hush-hush"},
		{`{"webhook":{"headers":{"Authorization":"Bearer hush-2"}}}`, "Bearer hush-2"},
		{`{"webhook":{"headers":{"Authorization":null}}}`, ""},
	} {
		b.do("PATCH", path, c.patch).want(200)
		b.sends(r, id, c.token)
		if n := b.lyingOpen(); n != 0 {
			t.Errorf("after %s %d rows lie open", c.patch, n)
		}
	}
	b.do("PATCH", path, `{"webhook":{"headers":null}}`).want(200)
	var bare bool
	if err := b.pool.QueryRow(t.Context(), `SELECT sealed_headers IS NULL FROM schedules WHERE id = $1`, id).Scan(&bare); err != nil || !bare {
		t.Error("values of headers that are gone are kept", err)
	}
	if outbound.CheckHeader("X-A", definition.Sealed) == nil {
		t.Error("what stands for a sealed value could be sent")
	}
}

// During an upgrade processes of before run what those of now write; a day after it
// all is sealed, what those of before have written too.
func TestProcessesOfBeforeRunSchedulesDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	b, r := setup(t), newReceiver(t)
	b.exec(`UPDATE schedule_sealing SET seal_after = $1`, b.clock.Now().Add(24*time.Hour)) // what 0047 does
	before := b.with(nil, nil)
	of := map[*bundle]string{before: before.put(r.hooked("before")), b: b.put(r.hooked("now"))}
	sent := func(by ...*bundle) {
		t.Helper()
		for _, id := range of {
			for _, process := range by {
				process.sends(r, id, "Bearer hush-hush")
			}
		}
	}
	b.walk()
	b.do("PATCH", "/v1/events/schedules/"+of[b], `{"description":"d"}`).want(200)
	if n := b.lyingOpen(); n != 2 {
		t.Fatalf("%d lie open, want both", n)
	}
	sent(b, before)
	b.clock.advance(24 * time.Hour)
	if before.walk(); b.lyingOpen() != 2 {
		t.Fatal("sealed without a key")
	}
	b.walk()
	if n := b.lyingOpen(); n != 0 {
		t.Fatalf("%d lie open", n)
	}
	sent(b)
}

// A walk goes over any number of schedules, in steps, once a day.
func TestWhatLiesOpenIsSealedOnceADay(t *testing.T) {
	t.Parallel()
	b, r := setup(t), newReceiver(t)
	before := b.with(nil, nil)
	id := before.put(r.hooked("a"))
	b.exec(`INSERT INTO schedules (id, account_id, name, type, tags, status, definition, next_fire_at, created_at, updated_at)
		SELECT id || i, account_id, i, type, tags, status, definition, next_fire_at, created_at, updated_at FROM schedules, generate_series(1, 1200) i`)
	if steps := b.walk(); steps != 3 || b.lyingOpen() != 0 {
		t.Fatalf("after %d steps %d lie open", steps, b.lyingOpen())
	}
	b.sends(r, id, "Bearer hush-hush")
	// A process of before writes one header of a schedule that is sealed.
	b.exec(`UPDATE schedules SET definition = json_build_object('name', name, 'type', type, 'schedule', definition->'schedule', 'webhook', json_build_object(
		'url', definition->'webhook'->'url', 'headers', (definition->'webhook'->'headers')::jsonb || '{"Authorization":"Bearer hush-2"}')) WHERE id = $1`, id)
	b.sends(r, id, "Bearer hush-2")
	if b.walk(); b.lyingOpen() != 1 {
		t.Fatal("a walk has begun within a day of the last")
	}
	b.clock.advance(24 * time.Hour)
	if b.walk(); b.lyingOpen() != 0 {
		t.Fatal("it lies open after the next walk")
	}
	b.sends(r, id, "Bearer hush-2")
}

func TestHeadersAreSealedAnew(t *testing.T) {
	t.Parallel()
	b, r := setup(t), newReceiver(t)
	id := b.put(r.hooked("a"))
	both := boxOf(t, "n", "k")
	b.with(both, nil).sends(r, id, "Bearer hush-hush")
	list, err := reseal.All(t.Context(), b.pool, both, []reseal.Column{schedules.Sealed()})
	if err != nil || list[0].Resealed != 1 {
		t.Fatal(list, err)
	}
	b.with(boxOf(t, "n"), nil).sends(r, id, "Bearer hush-hush")
}

// A webhook whose headers cannot be opened is never called; others go on.
func TestNoCallIsMadeWithoutItsHeaders(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bundle, id, other string) *bundle{
		"another key": func(b *bundle, _, _ string) *bundle { return b.with(boxOf(t, "x"), nil) },
		"no key":      func(b *bundle, _, _ string) *bundle { return b.with(nil, nil) },
		"another row's": func(b *bundle, id, other string) *bundle {
			b.exec(`UPDATE schedules SET sealed_headers = (SELECT sealed_headers FROM schedules WHERE id = $2) WHERE id = $1`, id, other)
			return b
		},
		"nothing": func(b *bundle, id, _ string) *bundle {
			b.exec(`UPDATE schedules SET sealed_headers = NULL WHERE id = $1`, id)
			return b
		},
		"other names": func(b *bundle, id, _ string) *bundle {
			b.exec(`UPDATE schedules SET definition = replace(definition::text, 'X-Kind', 'X-Other')::json WHERE id = $1`, id)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := setup(t), newReceiver(t)
			d := r.hooked("a")
			none := 0
			d.RetryPolicy = &definition.RetryPolicy{MaxRetries: &none}
			id, other := b.put(d), b.put(r.hooked("b"))
			var text bytes.Buffer
			spoilt := spoil(b, id, other)
			spoilt = spoilt.with(spoilt.service.Box, slog.New(slog.NewTextHandler(&text, nil)))
			if _, err := spoilt.service.Trigger(t.Context(), owner, id, ""); err != nil {
				t.Fatal(err)
			}
			spoilt.work(id)
			shown := fmt.Sprint(b.records(id))
			if _, seen := r.last(); seen != 0 || !strings.Contains(shown, "status:failed") || !strings.Contains(shown, "its headers cannot be read") {
				t.Errorf("%d calls: %s", seen, shown)
			}
			if log := text.String(); !strings.Contains(log, id) || !strings.Contains(log, "SLUICE_SECRETS_KEY") || strings.Contains(log+shown, "hush") {
				t.Error(log)
			}
			if _, err := spoilt.service.Update(t.Context(), owner, id, definition.Patch{}); err == nil {
				t.Error("it was changed")
			}
			if err := spoilt.service.Delete(t.Context(), owner, id); err != nil {
				t.Error(err)
			}
			b.sends(r, other, "Bearer hush-hush")
		})
	}
}

// The users of the processes may do all that sealing asks for.
func TestRolesMaySeal(t *testing.T) {
	t.Parallel()
	b, r := setup(t), newReceiver(t)
	as := func(role migrations.Role, box *seal.Box) *bundle {
		c := b.pool.Config()
		c.ConnConfig.RuntimeParams["role"] = string(role)
		pool, err := pgxpool.NewWithConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		other := b.with(box, nil)
		other.service.DB = pool
		return other
	}
	api, worker := as(migrations.ControlPlane, b.service.Box), as(migrations.Worker, b.service.Box)
	ids := []string{api.put(r.hooked("now")), as(migrations.ControlPlane, nil).put(r.hooked("before"))}
	patch, err := definition.ParsePatch([]byte(`{"description":"d"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.service.Update(t.Context(), owner, ids[0], patch); err != nil {
		t.Fatal(err)
	}
	if worker.walk(); b.lyingOpen() != 0 {
		t.Fatal("it lies open")
	}
	for _, id := range ids {
		api.sendsBy(worker, r, id, "Bearer hush-hush")
	}
}
