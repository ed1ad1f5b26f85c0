package audit

import (
	"strings"
	"testing"
	"time"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return t0.Add(time.Duration(seconds * float64(time.Second)))
}

// good is a run in which every promise was kept, with something to check for each.
func good() (Seen, Stored) {
	body := [32]byte{1}
	seen := Seen{
		Writes: []Write{
			{Kind: "stream", Name: "a", ID: "strm_a"}, {Kind: "stream", Name: "b", ID: "strm_b", Delete: true, Deleted: true},
			{Kind: "stream", Name: "lost answer"}, {Kind: "stream", Name: "half deleted", ID: "strm_c", Delete: true},
		},
		Hooks:     []Hook{{"evt_1", body, true}, {"evt_1", body, true}},
		Schedules: []Schedule{{ID: "schedule_1", Due: []time.Time{after(10)}}},
		Calls:     []Call{{"exec_1", after(10.2)}, {"exec_1", after(11)}},
		Payments:  []Payment{{Payer: "0xa", Served: 1, Receipts: 1, Funded: true}, {Payer: "0xb", Funded: true}, {Payer: "0xc"}},
		Price:     10, Funds: 100,
		Meters:  []Meter{{Name: "edge-1", Key: "key_1", Answered: 10, Unanswered: 2, AtRisk: 3}},
		Tokens:  Meter{Answered: 100, Unanswered: 50},
		Chats:   []Chat{{Done: true, Whole: true, Usage: true}, {}},
		Probes:  []Probe{{Edge: "edge-1", What: "revoked key", Status: 401, Code: "invalid_api_key", Want: 401, WantCode: "invalid_api_key"}},
		Configs: []Config{{2}},
		Tries:   []Try{{"edge-1", "GET /v1/streams", after(100), 200, ""}, {"edge-1", "GET /v1/streams", after(201), 503, ""}, {"edge-1", "GET /v1/streams", after(206), 200, ""}},
		Limits:  []Limited{{"edge-1", 200, ""}, {"edge-1", 429, "60"}, {"edge-1", 503, ""}},
		Faults:  []Struck{{"kill -9", "edge-1", Span{after(200), after(200)}}},
		Finals:  []Final{{"edge-1", "the key", "200", "200"}},
	}
	stored := Stored{
		Things:     []Thing{{"stream", "a", "strm_a"}, {"stream", "lost answer", "strm_x"}},
		Events:     []Event{{"evt_1", "stream.deleted", "strm_b", after(1), body}},
		Executions: []Execution{{ID: "exec_1", Schedule: "schedule_1", For: after(10), Status: "success"}},
		Payments:   []Settled{{Payer: "0xa", Grants: 1, State: "settled", Goods: 1, Balance: 90}, {Payer: "0xb", Grants: 1, State: "released", Balance: 100}},
		Usage:      map[string]int64{"key_1": 8}, Tokens: 120, Configs: map[int64]bool{1: true, 2: true},
	}
	return seen, stored
}

func TestAGoodRunBreaksNothing(t *testing.T) {
	t.Parallel()
	for _, l := range Audit(good()) {
		if len(l.Broken) > 0 {
			t.Errorf("%s: %v", l.Promise, l.Broken)
		}
		if l.Checked == 0 && l.Promise != "a revoked key ends within 5 s where the edge can hear of it" {
			t.Errorf("%s: nothing was checked", l.Promise)
		}
	}
}

// Each violation is planted into the good run alone, and found by the one promise
// that it breaks.
func TestEveryViolationIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		promise string
		plant   func(*Seen, *Stored)
	}{
		"an accepted write is gone":          {"no accepted write is lost", func(_ *Seen, s *Stored) { s.Things = s.Things[1:] }},
		"it is stored under another id":      {"no accepted write is lost", func(_ *Seen, s *Stored) { s.Things[0].ID = "strm_z" }},
		"a repetition made a second":         {"a repeated request takes effect once", func(_ *Seen, s *Stored) { s.Things = append(s.Things, Thing{"stream", "a", "strm_z"}) }},
		"an unanswered write was made twice": {"a repeated request takes effect once", func(_ *Seen, s *Stored) { s.Things = append(s.Things, Thing{"stream", "lost answer", "strm_y"}) }},
		"a deleted stream is back":           {"what was deleted stays deleted", func(_ *Seen, s *Stored) { s.Things = append(s.Things, Thing{"stream", "b", "strm_b"}) }},
		"an event was not delivered": {"no webhook is lost", func(_ *Seen, s *Stored) {
			s.Events = append(s.Events, Event{"evt_2", "stream.started", "strm_a", after(2), [32]byte{}})
		}},
		"a deletion made no event":        {"no webhook is lost", func(s *Seen, st *Stored) { st.Events[0].Stream = "strm_other" }},
		"a webhook is not signed":         {"a webhook is signed, and each copy of it the same", func(s *Seen, _ *Stored) { s.Hooks[1].Signed = false }},
		"its copy differs":                {"a webhook is signed, and each copy of it the same", func(s *Seen, _ *Stored) { s.Hooks[1].Body[0] = 9 }},
		"an event that never was is told": {"a webhook is signed, and each copy of it the same", func(s *Seen, _ *Stored) { s.Hooks = append(s.Hooks, Hook{Event: "evt_9", Signed: true}) }},
		"a run was missed":                {"no schedule is missed or doubled", func(s *Seen, _ *Stored) { s.Schedules[0].Due = append(s.Schedules[0].Due, after(70)) }},
		"a run was skipped":               {"no schedule is missed or doubled", func(_ *Seen, s *Stored) { s.Executions[0].Status = "skipped" }},
		"a run was doubled": {"no schedule is missed or doubled", func(_ *Seen, s *Stored) {
			s.Executions = append(s.Executions, Execution{ID: "exec_2", Schedule: "schedule_1", For: after(10), Status: "failed"})
		}},
		"a run came too early": {"no schedule runs before it is due", func(s *Seen, _ *Stored) { s.Calls[1].At = after(5) }},
		"a run came early while a worker's clock was wrong": {"no schedule runs before it is due", func(s *Seen, _ *Stored) {
			s.Calls[1].At, s.Skews = after(5), []Skew{{"worker-1", 300, Span{after(0), after(9)}}}
		}},
		"a success did nothing":               {"a run ends once, and success means that it was done", func(s *Seen, st *Stored) { s.Calls = nil }},
		"a run does not end":                  {"a run ends once, and success means that it was done", func(_ *Seen, s *Stored) { s.Executions[0].Status = "executing" }},
		"a run that nobody stored":            {"a run ends once, and success means that it was done", func(s *Seen, _ *Stored) { s.Calls = append(s.Calls, Call{Execution: "exec_9"}) }},
		"a payment was served twice":          {"no payment is granted twice", func(s *Seen, _ *Stored) { s.Payments[0].Served = 2 }},
		"a payment has two grants":            {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[0].Grants = 2 }},
		"a payment made two clips":            {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[0].Goods = 2 }},
		"a payer was charged twice":           {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[0].Balance = 80 }},
		"a refused payment was charged":       {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[1].Balance = 90 }},
		"money is still held":                 {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[1].Held = 10 }},
		"somebody was served for nothing":     {"who is served is charged once, and nobody else is", func(s *Seen, _ *Stored) { s.Payments[1].Served = 1 }},
		"nobody knows what became of it":      {"who is served is charged once, and nobody else is", func(_ *Seen, s *Stored) { s.Payments[1].State = "unresolved" }},
		"too few requests were counted":       {"meters equal requests within the stated bound", func(_ *Seen, s *Stored) { s.Usage["key_1"] = 6 }},
		"too many requests were counted":      {"meters equal requests within the stated bound", func(_ *Seen, s *Stored) { s.Usage["key_1"] = 13 }},
		"tokens are lost":                     {"tokens of completions are recorded", func(_ *Seen, s *Stored) { s.Tokens = 99 }},
		"tokens were counted twice":           {"tokens of completions are recorded", func(_ *Seen, s *Stored) { s.Tokens = 151 }},
		"half a completion says that it ends": {"a completion that ends with [DONE] is whole", func(s *Seen, _ *Stored) { s.Chats[0].Whole = false }},
		"a completion has no usage":           {"a completion that ends with [DONE] is whole", func(s *Seen, _ *Stored) { s.Chats[0].Usage = false }},
		"a revoked key got through":           {"no request passes that policy forbids", func(s *Seen, _ *Stored) { s.Probes[0].Status, s.Probes[0].Code = 200, "" }},
		"it reached the product":              {"no request passes that policy forbids", func(s *Seen, _ *Stored) { s.Probes[0].Status, s.Probes[0].Code = 404, "not_found" }},
		"it was refused for another reason":   {"no request passes that policy forbids", func(s *Seen, _ *Stored) { s.Probes[0].Code = "AUTH_001" }},
		"a revocation was not heard of": {"a revoked key ends within 5 s where the edge can hear of it", func(s *Seen, _ *Stored) {
			s.Probes = append(s.Probes, Probe{Edge: "edge-1", At: after(6), Revoked: after(0), Status: 200, Want: 401})
		}},
		"a configuration is lost":       {"no accepted configuration is lost", func(s *Seen, _ *Stored) { s.Configs = append(s.Configs, Config{3}) }},
		"a valid request was refused":   {"no valid request is refused", func(s *Seen, _ *Stored) { s.Tries[2].Status = 401 }},
		"nobody says when to come back": {"who asks too often hears when to come back, within a minute", func(s *Seen, _ *Stored) { s.Limits[1].RetryAfter = "" }},
		"a limit for ever":              {"who asks too often hears when to come back, within a minute", func(s *Seen, _ *Stored) { s.Limits[1].RetryAfter = "301" }},
		"an error out of nothing":       {"no error while nothing is broken", func(s *Seen, _ *Stored) { s.Tries[0].Status = 0 }},
		"it takes too long to get well": {"no error while nothing is broken", func(s *Seen, _ *Stored) { s.Tries[1].At = after(211) }},
		"an edge let an old key through while another's clock was wrong": {"no request passes that policy forbids", func(s *Seen, _ *Stored) {
			s.Skews = []Skew{{"edge-2", -300, Span{after(0), after(60)}}}
			s.Probes[0] = Probe{Edge: "edge-1", At: after(30), Expired: after(0), Status: 200, Want: 401}
		}},
		"an edge holds something old": {"when all is quiet, every edge holds what is stored", func(s *Seen, _ *Stored) { s.Finals[0].Got = "401" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, stored := good()
			c.plant(&seen, &stored)
			lines := Audit(seen, stored)
			for _, l := range lines {
				if broken := len(l.Broken) > 0; broken != (l.Promise == c.promise) {
					t.Errorf("%s: %v", l.Promise, l.Broken)
				}
			}
			if Broken(lines) != 1 {
				t.Errorf("%d violations", Broken(lines))
			}
		})
	}
}

// A revocation counts from when the edge could hear of it, and an edge that
// cannot judge does not let anything pass.
func TestWhoMayBeLate(t *testing.T) {
	t.Parallel()
	late := Probe{Edge: "edge-1", At: after(20), Revoked: after(0), Status: 200, Want: 401}
	for name, c := range map[string]struct {
		probe   Probe
		outages []Outage
		checked int
	}{
		"nothing was broken":             {late, nil, 1},
		"another edge was cut off":       {late, []Outage{{"edge-2", Span{after(1), after(19)}}}, 1},
		"this edge was cut off":          {late, []Outage{{"edge-1", Span{after(1), after(16)}}}, 0},
		"the database was gone":          {late, []Outage{{"", Span{after(1), after(16)}}}, 0},
		"it has had time since":          {late, []Outage{{"", Span{after(1), after(14)}}}, 1},
		"it is cut off again only now":   {late, []Outage{{"", Span{after(19), after(30)}}}, 0},
		"the revocation is a moment old": {Probe{Edge: "edge-1", At: after(3), Revoked: after(0), Status: 200, Want: 401}, nil, 0},
	} {
		l := revocations(Seen{Probes: []Probe{c.probe}, Outages: c.outages})
		if l.Checked != c.checked || len(l.Broken) != c.checked {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := revocations(Seen{Probes: []Probe{late}, Grace: 30 * time.Second}); l.Checked != 0 {
		t.Errorf("with more grace: %+v", l)
	}
	for status, held := range map[int]bool{0: true, 503: true, 429: true, 401: true, 200: false, 404: false, 302: false} {
		if got := (Probe{Status: status, Code: "x", Want: 401, WantCode: "x"}).held(); got != held {
			t.Errorf("%d: held %v", status, got)
		}
	}
}

// Who judges by a clock that is wrong is wrong by as much, and no more.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	behind := []Skew{{"edge-1", -300, Span{after(1000), after(1010)}}}
	for name, c := range map[string]struct {
		probe Probe
		held  bool
	}{
		"its time ended a minute before":     {Probe{Edge: "edge-1", At: after(1005), Expired: after(945), Status: 200, Want: 401}, true},
		"an hour before":                     {Probe{Edge: "edge-1", At: after(1005), Expired: after(-2600), Status: 200, Want: 401}, false},
		"at another edge":                    {Probe{Edge: "edge-2", At: after(1005), Expired: after(945), Status: 200, Want: 401}, false},
		"when the clock is right again":      {Probe{Edge: "edge-1", At: after(1030), Expired: after(945), Status: 200, Want: 401}, false},
		"a credential whose time never ends": {Probe{Edge: "edge-1", At: after(1005), Status: 200, Want: 401}, false},
	} {
		if l := policy(Seen{Probes: []Probe{c.probe}, Skews: behind}); (len(l.Broken) == 0) != c.held {
			t.Errorf("%s: %+v", name, l)
		}
	}
	seen, stored := good()
	seen.Calls[0].At, seen.Skews = after(5), []Skew{{"postgres", 5, Span{after(1), after(4)}}}
	if l := punctual(seen, stored); len(l.Broken) != 0 || l.Note != "1 call came early while the database's clock was ahead" {
		t.Errorf("%+v", l)
	}
	for name, c := range map[string]struct {
		skew    Skew
		excused bool
	}{
		"an edge is far behind":        {Skew{"edge-1", -300, Span{after(0), after(20)}}, true},
		"a worker is far ahead":        {Skew{"worker-1", 300, Span{after(0), after(20)}}, true},
		"an edge is within bounds":     {Skew{"edge-1", -30, Span{after(0), after(20)}}, false},
		"the database is a bit off":    {Skew{"postgres", 5, Span{after(0), after(20)}}, true},
		"it was so a long time ago":    {Skew{"edge-1", -300, Span{after(-100), after(-90)}}, false},
		"it was so until a moment ago": {Skew{"edge-1", -300, Span{after(-100), after(0)}}, true},
	} {
		l := valid(Seen{Tries: []Try{{At: after(10), Status: 401}}, Skews: []Skew{c.skew}})
		if (len(l.Broken) == 0) != c.excused {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestHowARunWent(t *testing.T) {
	t.Parallel()
	seen := Seen{
		Tries: []Try{
			{"edge-1", "GET /a", after(1), 200, ""}, {"edge-1", "GET /a", after(2), 0, ""}, {"edge-1", "GET /a", after(10.5), 200, ""}, {"edge-1", "GET /a", after(11.5), 0, ""},
			{"edge-2", "GET /a", after(14), 200, ""}, {"edge-1", "GET /a", after(14.5), 503, ""}, {"edge-1", "GET /a", after(15), 200, ""},
			{"edge-1", "PUT /b", after(15), 401, ""}, {"edge-1", "PUT /b", after(300), 503, ""}, {"edge-2", "PUT /b", after(16), 404, ""},
		},
		Faults: []Struck{{"cut", "a>b", Span{after(8), after(10)}}, {"cut", "a>c", Span{after(13), after(13.5)}}, {"crash", "postgres", Span{after(11), after(11)}}},
	}
	if got := ByKind(seen); len(got) != 2 || got[0] != (Requests{"GET /a", 7, 4, 3, 1, 0}) || got[1] != (Requests{"PUT /b", 3, 1, 1, 1, 1}) {
		t.Errorf("%+v", got)
	}
	if got := Recoveries(seen); len(got) != 2 || got[0] != (Recovery{"crash", 1, 4 * time.Second}) || got[1] != (Recovery{"cut", 2, 5 * time.Second}) {
		t.Errorf("%+v", got)
	}
	if got := UnderFire(seen); got < 0.57 || got > 0.58 {
		t.Errorf("%v", got)
	}
	var b strings.Builder
	if err := PrintRun(&b, seen); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cut    2      5.0 s\n", "GET /a   7      4       0        3       1\n", "57.1 % of the tries were served while something was broken\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

func TestWhatAKilledProcessTakesWithIt(t *testing.T) {
	t.Parallel()
	answered := []time.Time{after(1), after(5), after(9.5), after(11), after(20)}
	for name, c := range map[string]struct {
		kills   []time.Time
		outages []Span
		want    int64
	}{
		"nothing was killed":                       {nil, []Span{{after(0), after(30)}}, 0},
		"only the last moment":                     {[]time.Time{after(10)}, nil, 2},
		"all since it was cut off":                 {[]time.Time{after(10)}, []Span{{after(4), after(12)}}, 3},
		"it was connected again just before":       {[]time.Time{after(10)}, []Span{{after(4), after(7.5)}}, 3},
		"it was connected again long before":       {[]time.Time{after(10)}, []Span{{after(0), after(6)}}, 2},
		"one outage followed the other":            {[]time.Time{after(10)}, []Span{{after(6), after(10)}, {after(0), after(5)}}, 4},
		"two kills do not count a request twice":   {[]time.Time{after(10), after(10.5)}, nil, 2},
		"an outage inside a longer one is nothing": {[]time.Time{after(10)}, []Span{{after(0.5), after(10)}, {after(2), after(3)}}, 4},
	} {
		if got := AtRisk(answered, c.kills, c.outages, 2*time.Second); got != c.want {
			t.Errorf("%s: %d at risk, want %d", name, got, c.want)
		}
	}
}

func TestWhatAScheduleOwes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schedule Schedule
		end      time.Time
		want     int
	}{
		"every minute":                {Schedule{First: after(0), Minutely: true}, after(179), 3},
		"its first minute is not yet": {Schedule{First: after(60), Minutely: true}, after(30), 0},
		"one time":                    {Schedule{First: after(0)}, after(179), 1},
	} {
		owed := c.schedule.Until(c.end)
		if len(owed.Due) != c.want || c.want > 0 && !owed.Due[c.want-1].Equal(after(float64(60*(c.want-1)))) {
			t.Errorf("%s: %v", name, owed.Due)
		}
		if again := owed.Until(c.end); len(again.Due) != c.want {
			t.Errorf("%s: asked again, it owes %v", name, again.Due)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	l := Line{Promise: "nothing is lost", Checked: 40, Note: "well"}
	for range shown + 2 {
		l.breaks("thing %d is lost", 1)
	}
	if err := Print(&b, []Line{{Promise: "short", Checked: 1}, l}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PROMISE          CHECKED  BROKEN  NOTE\n", "short            1        0       \n", "nothing is lost  40       12      well\n",
		"broken: nothing is lost: thing 1 is lost\n", "  … and 2 more\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
