package schedules_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

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
	b.clock.Advance(24 * time.Hour)
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
	b.clock.Advance(24 * time.Hour)
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
	list, err := reencrypt.All(t.Context(), b.pool, both, []reencrypt.Column{schedules.Sealed()})
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
			if _, err := spoilt.service.Trigger(t.Context(), owner, id); err != nil {
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
	as := func(role migrations.Role, box *secretbox.Box) *bundle {
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
