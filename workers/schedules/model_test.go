package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/workers/cron"
	"sluice.dev/sluice/workers/schedules"
)

// The model is what a schedule's life should be, written down a second time
// without database, queue or look-back: it walks forward from run to run.
// Random operations are done to it and to the service alike, and both are
// compared after each.

// modelRun is an execution that is expected.
type modelRun struct {
	at     time.Time // zero: triggered by hand
	status string
}

// model is one expected schedule.
type model struct {
	id, status string
	cron, zone string
	once       time.Time // of a one-time schedule
	next       time.Time // zero: none
	catchUp    string
	overlap    string
	limit      int
	runs       []*modelRun
}

// following returns the model's first run after a time; zero: none.
func (m *model) following(after time.Time) time.Time {
	if !m.once.IsZero() {
		if m.once.After(after) {
			return m.once
		}
		return time.Time{}
	}
	expr, _ := cron.Parse(m.cron)
	loc, _ := cron.LoadZone(m.zone)
	next, _ := expr.Next(after, loc)
	return next
}

func (m *model) count(status string) (n int) {
	for _, r := range m.runs {
		if r.status == status {
			n++
		}
	}
	return n
}

// tick is what the workers do at a time.
func (m *model) tick(now time.Time) {
	if m.status != schedules.Active || m.next.After(now) {
		return
	}
	var due []time.Time
	for m.next = m.following(m.next.Add(-time.Nanosecond)); !m.next.IsZero() && !m.next.After(now); m.next = m.following(m.next) {
		due = append(due, m.next)
	}
	switch m.catchUp {
	case "skip":
		m.tickSkip(due, now)
	case "last":
		m.begin(due[len(due)-1], false)
	case "all":
		due = due[max(0, len(due)-m.limit):]
		for _, at := range due {
			m.begin(at, len(due) > 1)
		}
	}
	if m.next.IsZero() {
		m.status = schedules.Completed
	}
}

// tickSkip records the latest missed run and begins those of the last minute.
func (m *model) tickSkip(due []time.Time, now time.Time) {
	fresh := slices.IndexFunc(due, func(at time.Time) bool { return now.Sub(at) <= time.Minute })
	if fresh < 0 {
		fresh = len(due)
	}
	if fresh > 0 && len(due)-fresh < 2 {
		m.runs = append(m.runs, &modelRun{due[fresh-1], schedules.Skipped})
	}
	for _, at := range due[fresh:] {
		m.begin(at, false)
	}
}

// begin applies the overlap policy.
func (m *model) begin(at time.Time, queue bool) {
	status := schedules.Executing
	if m.overlap != "allow" && m.count(schedules.Executing)+m.count(schedules.Waiting) > 0 {
		status = schedules.Skipped
		if (m.overlap == "queue" || queue) && m.count(schedules.Waiting) < 100 {
			status = schedules.Waiting
		}
	}
	m.runs = append(m.runs, &modelRun{at, status})
}

// work ends every execution under way with success, which starts one that
// waits.
func (m *model) work() {
	for _, r := range m.runs {
		if r.status == schedules.Executing {
			r.status = schedules.Success
		}
	}
	for _, r := range m.runs {
		if r.status == schedules.Waiting {
			r.status = schedules.Executing
			return
		}
	}
}

func (m *model) pause() {
	m.status, m.next = schedules.Paused, time.Time{}
	for _, r := range m.runs {
		if r.status == schedules.Waiting {
			r.status = schedules.Skipped
		}
	}
}

// text is everything that is compared.
func (m *model) text() []string {
	lines := []string{m.status + " next " + stamp(m.next)}
	for _, r := range m.runs {
		lines = append(lines, stamp(r.at)+" "+r.status)
	}
	slices.Sort(lines)
	return lines
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

// modelWorld is the service and the models of all its schedules.
type modelWorld struct {
	*bundle
	r      *rand.Rand
	zone   string
	models []*model
	names  int
}

var modelCrons = []string{"0 2 * * *", "30 1 * * SUN", "*/20 1-3 * * *", "0 0 L * *", "15 */7 * * MON-FRI", "0 9 LW * *", "0 12 29 2 *"}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (w *modelWorld) create() {
	m := &model{status: schedules.Active, zone: w.zone, catchUp: pick(w.r, "skip", "last", "all"),
		overlap: pick(w.r, "skip", "queue", "allow"), limit: 1 + w.r.IntN(5)}
	timing := ""
	if w.r.IntN(4) == 0 {
		m.once = w.clock.Now().Add(time.Duration(1+w.r.IntN(200)) * time.Hour)
		timing = fmt.Sprintf(`{"type":"one_time","executeAt":%q}`, stamp(m.once))
	} else {
		m.cron = pick(w.r, modelCrons...)
		timing = fmt.Sprintf(`{"type":"recurring","cron":%q,"timezone":%q}`, m.cron, m.zone)
	}
	m.next = m.following(w.clock.Now())
	w.names++
	m.id = w.bundle.create(fmt.Sprint("m", w.names), timing,
		fmt.Sprintf(`,"catchUpPolicy":%q,"overlapPolicy":%q,"maxCatchUp":%d`, m.catchUp, m.overlap, m.limit))
	w.models = append(w.models, m)
}

// change does one of the customer's operations to a schedule.
func (w *modelWorld) change(m *model) {
	path := "/v1/events/schedules/" + m.id
	patch := func(body string, ok bool) {
		if got := w.do("PATCH", path, body).status; (got == 200) != ok {
			w.t.Fatalf("PATCH %s of a schedule that is %s answered %d", body, m.status, got)
		}
	}
	now := w.clock.Now()
	switch w.r.IntN(6) {
	case 0:
		patch(`{"status":"paused"}`, m.status != schedules.Completed)
		if m.status == schedules.Active {
			m.pause()
		}
	case 1:
		possible := m.status == schedules.Active || !m.following(now).IsZero()
		patch(`{"status":"active"}`, possible)
		if possible && m.status != schedules.Active {
			m.status, m.next = schedules.Active, m.following(now)
		}
	case 2:
		if other := pick(w.r, modelCrons...); m.once.IsZero() && other != m.cron {
			patch(fmt.Sprintf(`{"schedule":{"cron":%q}}`, other), true)
			if m.cron = other; m.status != schedules.Paused {
				m.next = m.following(now)
			}
		}
	case 3:
		patch(`{"description":"`+stamp(now)+`"}`, true)
	case 4:
		if w.do("POST", path+"/trigger", "").status == 202 {
			m.runs = append(m.runs, &modelRun{status: schedules.Executing})
		} else if m.status != schedules.Completed {
			w.t.Fatalf("a schedule that is %s cannot be triggered", m.status)
		}
	case 5:
		if w.r.IntN(3) == 0 {
			w.do("DELETE", path, "").want(204)
			w.models = slices.DeleteFunc(w.models, func(other *model) bool { return other == m })
		}
	}
}

// step does one random operation.
func (w *modelWorld) step() {
	switch n := w.r.IntN(10); {
	case len(w.models) < 3, n == 0 && len(w.models) < 6:
		w.create()
	case n < 4:
		w.change(pick(w.r, w.models...))
	case n < 6:
		m := pick(w.r, w.models...)
		w.work(m.id)
		m.work()
	default:
		w.clock.Advance(pick(w.r, time.Minute, time.Hour, 26*time.Hour, 9*24*time.Hour, 60*24*time.Hour))
		w.fire()
		for _, m := range w.models {
			m.tick(w.clock.Now())
		}
	}
}

// actual is a schedule of the service in the words of model.text.
func (w *modelWorld) actual(m *model) []string {
	w.t.Helper()
	got := w.do("GET", "/v1/events/schedules/"+m.id, "").want(200)
	next := got.text("schedule.nextExecution")
	if next == "" {
		next = "-"
	}
	lines := []string{got.text("status") + " next " + next}
	rows, err := w.pool.Query(w.t.Context(), `SELECT coalesce(to_char(scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '-') || ' ' || status
		FROM schedule_executions WHERE schedule_id = $1`, m.id)
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestTheServiceFollowsTheModel does random operations over ten years in three
// zones.
func TestTheServiceFollowsTheModel(t *testing.T) {
	t.Parallel()
	for seed, zone := range []string{"America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			w := &modelWorld{bundle: setup(t), r: rand.New(rand.NewPCG(uint64(seed), 1)), zone: zone}
			end := w.clock.Now().AddDate(10, 0, 0)
			for steps := 0; w.clock.Now().Before(end); steps++ {
				w.step()
				for _, m := range w.models {
					if diff := cmp.Diff(m.text(), w.actual(m)); diff != "" {
						t.Fatalf("step %d, %s %s %s at %v (-want +got):\n%s", steps, m.cron, m.catchUp, m.overlap, w.clock.Now(), diff)
					}
				}
			}
		})
	}
}
