package status

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/edgestatus"
)

// What counts as wrong.
const (
	lateAfter     = 5 * time.Second // schedules fire within one
	jobsWait      = time.Minute
	edgeLag       = 10 * time.Second // for a version to reach an edge that is connected
	keysBehind    = 1000             // changes
	sumsLag       = 3 * time.Hour    // of minutes that are summed up when their hour has ended
	mostFailing   = 0.5              // of the endpoints
	fewEndpoints  = 10               // below which failing ones are their owners' affair
	connectionsOf = 0.9              // of those that the database allows
)

// FindProblems returns what is wrong, in the order of the report's parts.
func FindProblems(r Report) []Problem {
	list := []Problem{}
	for _, part := range []struct {
		name string
		find func(Report, func(action, what string, args ...any))
	}{{"database", database}, {"processes", processes}, {"edges", edges}, {"queues", queues}, {"schedules", schedules}, {"webhooks", hooks}, {"usage", usage}} {
		part.find(r, func(action, what string, args ...any) {
			list = append(list, Problem{Part: part.name, What: fmt.Sprintf(what, args...), Action: action})
		})
	}
	return list
}

func database(r Report, wrong func(action, what string, args ...any)) {
	d := r.Database
	if d.Schema < d.SchemaNewest {
		wrong("Run `sluice migrate`.", "the schema is at %d, and processes know %d", d.Schema, d.SchemaNewest)
	}
	if float64(d.Connections) >= connectionsOf*float64(d.ConnectionsMax) {
		wrong("Raise max_connections, or put a pooler of sessions in between.", "%d of %d connections are taken", d.Connections, d.ConnectionsMax)
	}
}

func processes(r Report, wrong func(action, what string, args ...any)) {
	live := map[string]int{}
	for _, p := range r.Processes {
		if p.Live {
			live[p.Kind]++
			continue
		}
		wrong("Start it again, or look at its log: a process that is stopped in order says so.",
			"%s %s was last heard of %s ago", p.Kind, p.Name, r.Time.Sub(p.LastSeen).Round(time.Second))
	}
	if live["worker"] == 0 {
		wrong("Start `sluice worker`: schedules, webhooks and conversions wait for one.", "no worker runs")
	}
}

func edges(r Report, wrong func(action, what string, args ...any)) {
	if r.Edges.Version == 0 {
		wrong("Run `sluice apply -f deploy/sluice.yaml`.", "there is no configuration")
	}
	live := 0
	for _, e := range r.Edges.Data {
		if e.Live {
			live++
		}
		edge(e, r.Time, wrong)
	}
	if live == 0 {
		wrong("Start `sluice edge`.", "no edge runs")
	}
}

func edge(e edgestatus.Edge, now time.Time, wrong func(action, what string, args ...any)) {
	switch {
	case !e.Live:
		wrong("Start it again; if it was taken away on purpose, it leaves the list after an hour.", "%s was last heard of %s ago", e.ID, now.Sub(e.LastSeen).Round(time.Second))
	case len(e.Refusals) > 0:
		wrong("`sluice config rollback` brings back the version before.", "%s refuses version %d: %s", e.ID, e.Wanted, strings.Join(e.Refusals, "; "))
	case e.Report != nil && e.Report.State != "live" && e.Report.State != "starting":
		wrong("It reaches no control plane: look at the network between, and at its log.", "%s is %s", e.ID, e.Report.State)
	case !e.Current && e.Lag > edgeLag.Seconds():
		wrong("Look at `sluice edges` and at its log.", "%s holds version %d of %d for %.0f s", e.ID, e.Held, e.Wanted, e.Lag)
	case e.Feed != nil && e.Feed.Behind > keysBehind:
		wrong("Look at the key feed of the control plane, and at the edge's log.", "%s lacks %d changes of keys", e.ID, e.Feed.Behind)
	}
}

func queues(r Report, wrong func(action, what string, args ...any)) {
	for _, q := range r.Queues {
		if q.Oldest > jobsWait.Seconds() {
			wrong("Start more workers; any number may run.", "%d jobs wait in %s, one of them for %.0f s", q.Waiting, q.Name, q.Oldest)
		}
	}
}

func schedules(r Report, wrong func(action, what string, args ...any)) {
	if s := r.Schedules; s.Late > 0 {
		wrong("Look whether workers run, and whether the database is slow.", "%d schedules are late, one by %.0f s", s.Late, s.Latest)
	}
}

func hooks(r Report, wrong func(action, what string, args ...any)) {
	w := r.Webhooks
	if w.Endpoints >= fewEndpoints && float64(w.Failing) > mostFailing*float64(w.Endpoints) {
		wrong("So many at once point to our own way out: name resolution, a firewall, a proxy.", "%d of %d webhook endpoints fail", w.Failing, w.Endpoints)
	}
}

func usage(r Report, wrong func(action, what string, args ...any)) {
	if behind := r.Time.Sub(r.Usage.SummedTo); behind > sumsLag+time.Hour {
		wrong("Look at the worker's log for \"metering failed\".", "usage is summed up only to %s", r.Usage.SummedTo.UTC().Format(time.RFC3339))
	}
}
