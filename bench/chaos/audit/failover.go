package audit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// FailOver is the kind of fault in which PostgreSQL's standby takes over, and Steady
// what a client asks a service for that needs no database.
const (
	FailOver = "fail over"
	Steady   = "GET /v1/steady"
)

// writes are what clients ask for that is stored before it is answered.
var writes = []string{"POST /v1/streams", "POST /v1/auth/keys", "POST /v1/events/schedules", "PATCH /v1/events/schedules/{id}", "DELETE /v1/streams/{id}", "DELETE /v1/auth/keys/{id}"}

// Failover is how one went.
type Failover struct {
	Promoted time.Duration // from the loss of the primary until the standby took writes
	Written  time.Duration // until a client's write was accepted again; 0: none was
	Refused  int           // writes in vain, which clients repeat
	Steady   int           // requests for what needs no database, up to that write
	Failed   int           // of those
}

// Failovers are those of a run, in their order.
func Failovers(seen Seen) (all []Failover) {
	tries := slices.Clone(seen.Tries)
	slices.SortFunc(tries, func(a, b Try) int { return a.At.Compare(b.At) })
	for _, f := range seen.Faults {
		if f.Kind == FailOver {
			all = append(all, failover(tries, f.Span))
		}
	}
	return all
}

func failover(tries []Try, s Span) Failover {
	f := Failover{Promoted: s.To.Sub(s.From)}
	i, _ := slices.BinarySearchFunc(tries, s.From, func(t Try, at time.Time) int { return cmp.Or(t.At.Compare(at), 1) })
	for _, t := range tries[i:] {
		bad := t.failed() || t.refused()
		switch {
		case t.What == Steady:
			f.Steady++
			if bad {
				f.Failed++
			}
		case !slices.Contains(writes, t.What):
		case bad:
			f.Refused++
		case t.At.After(s.To): // what was accepted before was the old primary's
			f.Written = t.At.Sub(s.From)
			return f
		}
	}
	return f
}

// PrintFailovers writes them as a table.
func PrintFailovers(w io.Writer, all []Failover) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAILOVER\tPROMOTED AFTER\tWRITES ACCEPTED AFTER\tWRITES IN VAIN\tREQUESTS THAT NEED NO DATABASE\tFAILED")
	for i, f := range all {
		written := "never"
		if f.Written > 0 {
			written = fmt.Sprintf("%.2f s", f.Written.Seconds())
		}
		fmt.Fprintf(t, "%d\t%.2f s\t%s\t%d\t%d\t%d\n", i+1, f.Promoted.Seconds(), written, f.Refused, f.Steady, f.Failed)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// steady is a promise of drills alone, in which nothing happens to edges.
func steady(seen Seen) Line {
	l := Line{Promise: "edges serve what needs no database while PostgreSQL fails over"}
	for _, t := range seen.Tries {
		if t.What != Steady {
			continue
		}
		l.Checked++
		if t.failed() || t.refused() {
			l.breaks("%s answered %d %s", t.Edge, t.Status, t.Code)
		}
	}
	return l
}

// taken is one too: somebody's write is accepted again after each.
func taken(seen Seen) Line {
	l := Line{Promise: "writes are accepted again after a failover"}
	for i, f := range Failovers(seen) {
		l.Checked++
		if f.Written == 0 {
			l.breaks("none was after failover %d", i+1)
		}
	}
	return l
}

// Drill is the verdict on what a drill alone shows.
func Drill(seen Seen) []Line { return []Line{steady(seen), taken(seen)} }
