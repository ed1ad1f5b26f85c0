package schedules_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/workers/schedules"
)

// priorities counts the jobs of an account by their priority.
func (b *bundle) priorities(account string) map[int]int {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), `SELECT priority::int, count(*)::int FROM river_job WHERE args->>'account' = $1 GROUP BY 1`, account)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	found := map[int]int{}
	for rows.Next() {
		var priority, n int
		if err := rows.Scan(&priority, &n); err != nil {
			b.t.Fatal(err)
		}
		found[priority] = n
	}
	return found
}

// Of one account more schedules are due than several claims take, of another a few,
// a little later: the first claim has those few.
func TestAccountsTakeTurnsInAClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := b.create("many", daily, "")
	few := b.call(stranger, "POST", "/v1/events/schedules", `{"name":"few","type":"custom","schedule":`+daily+`}`).want(201).text("id")
	for id, n := range map[string]int{many: 300, few: 4} {
		b.exec(`INSERT INTO schedules (id, account_id, name, type, tags, status, definition, next_fire_at, created_at, updated_at)
			SELECT id || n, account_id, name || n, type, tags, status, definition, next_fire_at, created_at, updated_at
			FROM schedules, generate_series(1, $2) n WHERE id = $1`, id, n)
	}
	b.exec(`UPDATE schedules SET next_fire_at = next_fire_at + interval '1 second' WHERE account_id = $1`, stranger)
	b.clock.Advance(2*time.Hour + time.Second)
	fired, err := b.service.FireDue(t.Context(), nil, false)
	if err != nil || fired.Started != 100 || !fired.Full || fired.Lateness != time.Second {
		t.Fatalf("%+v %v", fired, err)
	}
	if first, other := b.priorities(stranger), b.priorities(owner); first[schedules.First] != 5 || other[schedules.First] != 20 || other[schedules.Second] != 75 {
		t.Errorf("jobs by priority: %v of the few, %v of the many", first, other)
	}
	if rest := b.fire(); rest != 206 {
		t.Errorf("%d are left", rest)
	}
}

// turns has the executions of one account wait.
type turns struct {
	account string
	wait    time.Duration
}

func (t turns) Behind() []string { return []string{t.account} }

func (t turns) Turn(account string) time.Duration {
	if account == t.account {
		return t.wait
	}
	return 0
}

// Schedules of an account whose executions wait for their turn are left to a claim of
// their own, which puts the jobs into the queue for when it comes.
func TestAccountsThatAreBehindAreClaimedApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create("much", daily, "")
	b.call(stranger, "POST", "/v1/events/schedules", `{"name":"little","type":"custom","schedule":`+daily+`}`).want(201)
	b.clock.Advance(2 * time.Hour)
	behind := turns{owner, time.Minute}
	if fired, err := b.service.FireDue(t.Context(), behind, false); err != nil || fired.Started != 1 || len(b.priorities(owner)) != 0 {
		t.Fatalf("%+v %v", fired, err)
	}
	if fired, err := b.service.FireDue(t.Context(), turns{}, true); err != nil || fired.Started != 0 {
		t.Fatalf("nobody is behind: %+v %v", fired, err)
	}
	if fired, err := b.service.FireDue(t.Context(), behind, true); err != nil || fired.Started != 1 || b.priorities(owner)[schedules.Behind] != 1 {
		t.Fatalf("%+v %v", fired, err)
	}
	var wait time.Duration
	if err := b.pool.QueryRow(t.Context(), `SELECT scheduled_at - created_at FROM river_job WHERE priority = $1`, schedules.Behind).Scan(&wait); err != nil || wait < 59*time.Second {
		t.Errorf("the job waits for %v, %v", wait, err)
	}
	b.clock.Advance(time.Minute)
	if n, err := b.service.TakeOver(t.Context()); err != nil || n != 1 { // the other's, which nobody has worked on
		t.Errorf("%d taken over while it waits, %v", n, err)
	}
}

// What an account that is behind has planned for later costs the claims of others nothing.
func TestAClaimReadsNothingThatIsDueLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("much", daily, "")
	const many = 2000
	b.exec(`INSERT INTO schedules (id, account_id, name, type, tags, status, definition, next_fire_at, created_at, updated_at)
		SELECT 'schedule_later' || n, account_id, 'later' || n, type, tags, 'active', definition, $2::timestamptz + n * interval '1 second', created_at, updated_at
		FROM schedules, generate_series(1, $3::int) n WHERE id = $1`, id, b.clock.Now().Add(time.Minute), many)
	b.exec(`ANALYZE schedules`)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	config := b.service.Config
	config.DB = tx
	s := schedules.New(config)
	for _, behind := range []schedules.Turns{turns{}, turns{owner, time.Minute}} {
		if _, err := s.FireDue(t.Context(), behind, false); err != nil {
			t.Fatal(err)
		}
	}
	var read int
	err = tx.QueryRow(t.Context(), `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'schedules'`).Scan(&read)
	if err != nil || read > many/10 {
		t.Errorf("%d rows are read, %v", read, err)
	}
}

// begun are attempts at so many triggered runs of a schedule.
func (b *bundle) begun(account, schedule string, n int) (all []schedules.Attempt) {
	b.t.Helper()
	for range n {
		id := b.call(account, "POST", "/v1/events/schedules/"+schedule+"/trigger", "").want(202).text("executionId")
		a, _, err := b.service.Begin(b.t.Context(), id)
		if err != nil || a == nil {
			b.t.Fatal(a, err)
		}
		all = append(all, *a)
	}
	return all
}

// Runs of an account that cannot end, since their schedule is held, keep nobody else's from ending.
func TestNobodyWaitsForTheEndsOfAnothersRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	much := b.create("much", daily, "")
	little := b.call(stranger, "POST", "/v1/events/schedules", `{"name":"little","type":"custom","schedule":`+daily+`}`).want(201).text("id")
	const many = 12
	all, other := b.begun(owner, much, many), b.begun(stranger, little, 1)[0]
	wide := b.pool.Config() // connections are not what is waited for
	wide.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), wide)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	config := b.service.Config
	config.DB = pool
	service := schedules.New(config)
	hold, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Exec(t.Context(), `SELECT FROM schedules WHERE id = $1 FOR UPDATE`, much); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Int32
	var ends sync.WaitGroup
	for _, a := range all {
		ends.Go(func() {
			_ = service.Finish(t.Context(), a, schedules.Outcome{Status: schedules.Success})
			ended.Add(1)
		})
	}
	for waiting := 0; waiting < 4; {
		if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := service.Finish(t.Context(), other, schedules.Outcome{Status: schedules.Success}); err != nil || ended.Load() == many {
		t.Errorf("it ended after %d of the other's, %v", ended.Load(), err)
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	ends.Wait()
}

func TestTriggeredRunsThatArePendingAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trigger := func(account, id string) answer {
		return b.call(account, "POST", "/v1/events/schedules/"+id+"/trigger", "")
	}
	ids := make([]string, 6)
	for i := range ids {
		ids[i] = b.create(fmt.Sprint("a", i), daily, "")
	}
	for _, id := range ids[:5] {
		for range 20 {
			trigger(owner, id).want(202)
		}
		if a := trigger(owner, id).want(429); a.header.Get("Retry-After") == "" || a.text("error.code") != "rate_limit_exceeded" {
			t.Error(a.raw, a.header)
		}
	}
	trigger(owner, ids[5]).want(429)
	fresh := b.create("fresh", daily, "")
	b.exec(`ALTER TABLE schedule_triggers RENAME TO triggers_away`)
	trigger(owner, fresh).want(429) // what the account was refused is not read again for each of its schedules
	b.exec(`ALTER TABLE triggers_away RENAME TO schedule_triggers`)
	other := b.call(stranger, "POST", "/v1/events/schedules", `{"name":"b","type":"custom","schedule":`+daily+`}`).want(201).text("id")
	trigger(stranger, other).want(202)
	if got := b.priorities(owner); got[schedules.First] != 20 || got[schedules.Second] != 80 {
		t.Errorf("jobs by priority: %v", got)
	}
	b.work(ids[0])
	trigger(owner, ids[0]).want(429) // from memory
	b.clock.Advance(time.Second)
	trigger(owner, ids[0]).want(202)
	for range 19 {
		trigger(owner, ids[5]).want(202)
	}
	trigger(owner, ids[5]).want(429)
}

// A job that is put off goes behind others, and its execution is not given to
// another worker meanwhile.
func TestPostpone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	execution := b.do("POST", "/v1/events/schedules/"+id+"/trigger", "").want(202).text("executionId")
	var job int64
	if err := b.pool.QueryRow(t.Context(), `UPDATE river_job SET state = 'running' RETURNING id`).Scan(&job); err != nil {
		t.Fatal(err)
	}
	if err := b.service.Postpone(t.Context(), job, execution, b.clock.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := b.priorities(owner); got[schedules.Behind] != 1 {
		t.Errorf("jobs by priority: %v", got)
	}
	b.clock.Advance(time.Minute)
	if n, err := b.service.TakeOver(t.Context()); n != 0 || err != nil {
		t.Errorf("%d taken over while it waits, %v", n, err)
	}
	b.clock.Advance(11 * time.Second)
	if n, err := b.service.TakeOver(t.Context()); n != 1 || err != nil {
		t.Errorf("%d taken over when it does not come back, %v", n, err)
	}
}
