package schedules_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/workers/schedules"
)

// suspend keeps the owner out, and resume lets it in again as the control plane does.
func (b *bundle) suspend() {
	b.t.Helper()
	if _, err := (accounts.Store{DB: b.pool}).Suspend(b.t.Context(), owner, "x"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) resume() {
	b.t.Helper()
	if _, err := (accounts.Store{DB: b.pool, Resumed: b.service.ReleaseTx}).Resume(b.t.Context(), owner); err != nil {
		b.t.Fatal(err)
	}
}

// looked reports how many schedules stand among those that are due.
func (b *bundle) looked() (n int) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), `SELECT count(*) FROM schedules WHERE next_fire_at <= $1`, b.clock.Now()).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// While an account is suspended nothing of it runs, and nobody looks at its schedules twice.
// Resumed it goes on as after a time without workers: by the catch-up policy of each.
func TestSchedulesOfASuspendedAccountWait(t *testing.T) {
	t.Parallel()
	const hourly = `{"type":"recurring","cron":"0 * * * *"}`
	b := setup(t)
	ids := map[string]string{}
	for _, policy := range []string{"skip", "last", "all"} {
		ids[policy] = b.create(policy, hourly, `,"catchUpPolicy":"`+policy+`"`)
	}
	ids["once"] = b.create("once", `{"type":"one_time","executeAt":"2026-01-01T13:30:00Z"}`, "")
	ids["paused"] = b.create("paused", hourly, "")
	ids["changed"] = b.create("changed", hourly, "")
	other := b.call(stranger, "POST", "/v1/events/schedules", `{"name":"other","type":"custom","schedule":`+hourly+`}`).want(201).text("id")
	b.suspend()
	for range 5 {
		b.clock.Advance(time.Hour)
		b.fire()
		b.work(other)
		if n := b.looked(); n != 0 {
			t.Fatalf("%d schedules are due after a claim", n)
		}
	}
	for name, id := range ids {
		if runs := b.executions(id, "executing", "waiting", "success", "skipped"); len(runs) != 0 {
			t.Errorf("%s: %v", name, runs)
		}
	}
	if runs := b.executions(other, "success"); len(runs) != 5 {
		t.Errorf("another account's ran %d times", len(runs))
	}
	// An operator may change them meanwhile.
	b.do("PATCH", "/v1/events/schedules/"+ids["paused"], `{"status":"paused"}`).want(200)
	b.do("PATCH", "/v1/events/schedules/"+ids["changed"], `{"cron":"30 * * * *"}`).want(200)
	b.do("PATCH", "/v1/events/schedules/"+ids["last"], `{"description":"waits"}`).want(200)
	if got := b.do("GET", "/v1/events/schedules/"+ids["last"], "").want(200); got.at("schedule.nextExecution") != nil || got.text("status") != "active" {
		t.Error(got)
	}
	b.clock.Advance(20 * time.Minute)
	b.resume()
	for range 6 {
		b.fire()
		for _, id := range ids {
			b.work(id)
		}
	}
	for name, want := range map[string][2]int{"skip": {0, 1}, "last": {1, 0}, "all": {5, 0}, "once": {1, 0}, "paused": {0, 0}, "changed": {0, 0}} {
		ran, skipped := b.executions(ids[name], "success"), b.executions(ids[name], "skipped")
		if len(ran) != want[0] || len(skipped) != want[1] {
			t.Errorf("%s: ran %d times, skipped %d, want %v", name, len(ran), len(skipped), want)
		}
	}
	b.clock.Advance(time.Hour)
	b.fire()
	b.work(ids["changed"])
	if ran := b.executions(ids["changed"], "success"); len(ran) != 1 {
		t.Errorf("changed meanwhile: %v", ran)
	}
}

// An execution that was made before, or is triggered by an operator, is attempted when the
// account is resumed: its job looks once a minute, and nobody takes it for lost.
func TestExecutionsOfASuspendedAccountWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"0 0 1 1 *"}`, "")
	b.do("POST", "/v1/events/schedules/"+id+"/trigger", "").want(202)
	b.suspend()
	for range 3 {
		if again := b.work(id); again != time.Minute {
			t.Fatalf("asks again after %s", again)
		}
		if n, err := b.service.TakeOver(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		b.clock.Advance(time.Minute)
	}
	b.resume()
	if again := b.work(id); again != 0 || len(b.executions(id, schedules.Success)) != 1 {
		t.Error(again, b.records(id))
	}
}

// However a resumption and claims of the same schedules come upon each other, none is left
// behind.
func TestNoScheduleStaysHeldWhenItsAccountIsResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"* * * * *"}`, "")
	for range 20 {
		b.suspend()
		b.clock.Advance(time.Minute)
		claimed := make(chan error, 1)
		go func() {
			_, err := b.service.FireDue(t.Context(), nil, false)
			claimed <- err
		}()
		b.resume()
		if err := <-claimed; err != nil {
			t.Fatal(err)
		}
		var held int
		if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM schedules WHERE held_fire_at IS NOT NULL`).Scan(&held); err != nil || held != 0 {
			t.Fatalf("%d schedules are held, %v", held, err)
		}
		b.fire()
		b.work(id)
	}
	if ran := b.executions(id, schedules.Success); len(ran) != 20 {
		t.Errorf("it ran %d times of 20", len(ran))
	}
}
