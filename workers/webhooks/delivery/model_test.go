package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// Whatever is done in whatever order, no delivery is forgotten: each pending
// one has its job, and once all is well again every one ends.
func TestNoOrderOfThingsForgetsADelivery(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := model{setup(t), rand.New(rand.NewPCG(seed, 1)), ""}
			m.sub = m.Subscribe(m.receiver.URL, webhooks.Create{Events: []string{"stream.*"}, Ordered: seed%2 == 1}).ID
			for range 60 {
				m.step()
				m.check()
			}
			m.heal()
		})
	}
}

type model struct {
	bundle
	rand *rand.Rand
	sub  string
}

// step does one thing at random.
func (m model) step() {
	m.T.Helper()
	switch m.rand.IntN(12) {
	case 0, 1, 2:
		m.Emit(events.Event{StreamID: fmt.Sprint("strm_", m.rand.IntN(2))})
	case 3, 4, 5, 6:
		m.runOne(m.rand.IntN(4) == 0)
	case 7:
		m.receiver.Answer([]int{200, 500, 410}[m.rand.IntN(3)])
	case 8:
		m.set(m.sub, webhooks.Paused)
	case 9:
		m.set(m.sub, webhooks.Active)
	case 10:
		m.resendOne()
	case 11:
		m.clock.Set(m.clock.Now().Add(time.Minute))
		_, err := m.Service.Recover(m.T.Context(), webhooktest.Account, m.sub, start.Add(-time.Hour), time.Time{}, m.rand.IntN(2) == 0)
		m.conflictIsFine(err)
		m.recover()
	}
}

// runOne runs a job; if again, once more, as after a crash. A job that is to
// wait goes back into the queue.
func (m model) runOne(again bool) {
	m.T.Helper()
	jobs := m.Jobs()
	if len(jobs) == 0 {
		return
	}
	j := jobs[m.rand.IntN(len(jobs))]
	r, err := m.Attempt(m.T.Context(), j.Args)
	if err == nil && again {
		r, err = m.Attempt(m.T.Context(), j.Args)
	}
	if err != nil {
		m.T.Fatal(err)
	}
	if r.Wait == 0 {
		m.Take(j)
	}
}

func (m model) resendOne() {
	m.T.Helper()
	list, err := m.Service.Deliveries(m.T.Context(), webhooktest.Account, m.sub, webhooks.DeliveryFilter{Limit: 50})
	if err != nil {
		m.T.Fatal(err)
	}
	if len(list) > 0 {
		m.conflictIsFine(m.Service.Resend(m.T.Context(), webhooktest.Account, m.sub, list[m.rand.IntN(len(list))].Number()))
	}
}

// conflictIsFine fails the test on any error but that of a subscription that
// is not active.
func (m model) conflictIsFine(err error) {
	m.T.Helper()
	if err != nil && apierror.Code(err) != "conflict" {
		m.T.Fatal(err)
	}
}

// check holds the rules that tie deliveries, jobs and the log together.
func (m model) check() {
	m.T.Helper()
	for rule, sql := range map[string]string{
		"a pending delivery has a job of its generation": `SELECT d.id FROM webhook_deliveries d WHERE d.status = 'pending' AND NOT EXISTS (
			SELECT 1 FROM river_job j WHERE (j.args->>'d')::bigint = d.id AND (j.args->>'g')::integer = d.generation AND j.finalized_at IS NULL)`,
		"a delivery has at most one job of its generation": `SELECT d.id FROM webhook_deliveries d JOIN river_job j
			ON (j.args->>'d')::bigint = d.id AND (j.args->>'g')::integer = d.generation WHERE d.status = 'pending' GROUP BY d.id HAVING count(*) > 1`,
		"a failed delivery says so": `SELECT id FROM webhook_deliveries WHERE (status = 'failed') <> (error_code IS NOT NULL)`,
		"what is finished has its time, and nothing else has": `SELECT id FROM webhook_deliveries
			WHERE (status IN ('succeeded', 'failed')) <> (finished_at IS NOT NULL)`,
		"a held delivery belongs to a subscription at rest, or is being released": `SELECT d.id FROM webhook_deliveries d
			JOIN webhook_subscriptions s ON s.id = d.subscription_id WHERE d.status = 'held' AND s.status = 'active'
			AND NOT EXISTS (SELECT 1 FROM webhook_recoveries r WHERE r.subscription_id = s.id AND r.kind = 'release' AND r.status = 'running')`,
		"what succeeded has an attempt that did": `SELECT d.id FROM webhook_deliveries d WHERE d.status = 'succeeded'
			AND NOT EXISTS (SELECT 1 FROM webhook_attempts a WHERE a.delivery_id = d.id AND a.outcome = 'succeeded')`,
	} {
		rows, _ := m.Pool.Query(m.T.Context(), sql)
		broken, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(broken) > 0 {
			m.T.Fatalf("%s: not so for %v, %v", rule, broken, err)
		}
	}
}

// heal makes everything work again and lets all jobs run: nothing may be left.
func (m model) heal() {
	m.T.Helper()
	m.receiver.Answer(200)
	m.set(m.sub, webhooks.Active)
	m.recover()
	for rounds := 0; len(m.Jobs()) > 0; rounds++ {
		if rounds > 1000 {
			m.T.Fatalf("%d jobs go on for ever", len(m.Jobs()))
		}
		m.clock.Set(m.clock.Now().Add(time.Minute))
		m.runOne(false)
	}
	m.check()
	var open int
	err := m.Pool.QueryRow(m.T.Context(), `SELECT count(*) FROM webhook_deliveries WHERE status IN ('pending', 'held')`).Scan(&open)
	if err != nil || open > 0 {
		m.T.Errorf("%d deliveries are left open, %v", open, err)
	}
	m.compareWithLog()
}
