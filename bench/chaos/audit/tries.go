package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Try is one request that nothing forbids, each repetition by itself.
type Try struct {
	Edge   string    // who was asked; empty: it does not matter
	What   string    // method and path, ids left out
	At     time.Time // of the answer, or of the end of patience
	Status int       // 0: no whole answer
	Code   string    // of the error
}

// Struck is one thing that went wrong, as it was.
type Struck struct {
	Kind, Target string
	Span         // both ends are the same where it was over at once
}

// failed says whether the request may be repeated, and has to be.
func (t Try) failed() bool {
	return t.Status == 0 || t.Status >= 500 || slices.Contains([]int{408, 409, 425, 429}, t.Status)
}

// refused says whether the platform said no. Not found and payment required are
// answers.
func (t Try) refused() bool {
	return !t.failed() && t.Status >= 400 && t.Status != 404 && t.Status != 402
}

// excused says whether a clock was so wrong that a refusal was to be expected:
// the database's, by which the platform lives, or any other beyond Tolerance.
func (t Try) excused(skews []Skew) bool {
	return slices.ContainsFunc(skews, func(s Skew) bool {
		return s.at(t.At) && (s.Part == "postgres" || time.Duration(max(s.Seconds, -s.Seconds))*time.Second > Tolerance)
	})
}

func valid(seen Seen) Line {
	l := Line{Promise: "no valid request is refused", Checked: len(seen.Tries)}
	served, excused := 0, 0
	for _, t := range seen.Tries {
		switch {
		case !t.refused():
			if !t.failed() {
				served++
			}
		case t.excused(seen.Skews):
			excused++
		default:
			l.breaks("%s at %s was answered %d %s", t.What, t.Edge, t.Status, t.Code)
		}
	}
	if l.Checked > 0 {
		l.Note = fmt.Sprintf("%.1f %% of all tries were served; %d were refused while a clock was wrong", 100*float64(served)/float64(l.Checked), excused)
	}
	return l
}

// calmAfter is how long the platform may take to be well again after the last
// thing that went wrong.
const calmAfter = 10 * time.Second

// calm says whether nothing was broken at t, or has been for calmAfter.
func calm(faults []Struck, t time.Time) bool {
	return !slices.ContainsFunc(faults, func(s Struck) bool {
		return !t.Before(s.From) && t.Before(s.To.Add(calmAfter))
	})
}

func quiet(seen Seen) Line {
	l := Line{Promise: "no error while nothing is broken"}
	for _, t := range seen.Tries {
		if !calm(seen.Faults, t.At) {
			continue
		}
		l.Checked++
		if t.failed() && !seen.Busy {
			l.breaks("%s at %s was answered %d %s", t.What, t.Edge, t.Status, t.Code)
		}
	}
	if seen.Busy {
		l.Note = "not judged on a machine that does other things too"
	}
	return l
}

// Requests are the tries of one kind.
type Requests struct {
	What                 string
	Tries, Served        int
	Failed, FailedInCalm int // no answer, or one that asks to try again
	Refused              int
}

// ByKind counts tries by what was asked, in its order.
func ByKind(seen Seen) (all []Requests) {
	kinds := map[string]*Requests{}
	for _, t := range seen.Tries {
		k := kinds[t.What]
		if k == nil {
			k = &Requests{What: t.What}
			kinds[t.What] = k
		}
		k.Tries++
		switch {
		case t.failed():
			k.Failed++
			if calm(seen.Faults, t.At) {
				k.FailedInCalm++
			}
		case t.refused():
			k.Refused++
		default:
			k.Served++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, *kinds[what])
	}
	return all
}

// Recovery says how one kind of fault went.
type Recovery struct {
	Kind  string
	Times int
	// Worst is the longest time from the end of such a fault until clients who had
	// seen it were served again: one who asked an edge for something in vain within
	// soon of it, until the first who got that there. Other faults that came
	// meanwhile go with it, and the pauses of clients. 0: nobody noticed.
	Worst time.Duration
}

// soon is how long after its end a fault may show first.
const soon = 2 * time.Second

// Recoveries are those of the kinds that there were, by name.
func Recoveries(seen Seen) (all []Recovery) {
	type asked struct{ edge, what string }
	tries := map[asked][]Try{}
	for _, t := range seen.Tries {
		k := asked{t.Edge, t.What}
		tries[k] = append(tries[k], t)
	}
	for _, list := range tries {
		slices.SortFunc(list, func(a, b Try) int { return a.At.Compare(b.At) })
	}
	kinds := map[string]*Recovery{}
	for _, f := range seen.Faults {
		k := kinds[f.Kind]
		if k == nil {
			k = &Recovery{Kind: f.Kind}
			kinds[f.Kind] = k
		}
		k.Times++
		for _, list := range tries {
			k.Worst = max(k.Worst, recovered(list, f.To))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, *kinds[kind])
	}
	return all
}

// recovered is how long after since the first try was served that followed one in
// vain; 0: none was in vain soon after.
func recovered(tries []Try, since time.Time) time.Duration {
	i, _ := slices.BinarySearchFunc(tries, since, func(t Try, at time.Time) int { return t.At.Compare(at) })
	failed := false
	for _, t := range tries[i:] {
		switch {
		case failed && !t.failed():
			return t.At.Sub(since)
		case !failed && t.At.Sub(since) > soon:
			return 0
		}
		failed = failed || t.failed()
	}
	return 0
}

// UnderFire is the part of the tries that were served while something was broken.
func UnderFire(seen Seen) float64 {
	all, served := 0, 0
	for _, t := range seen.Tries {
		if calm(seen.Faults, t.At) {
			continue
		}
		all++
		if !t.failed() && !t.refused() {
			served++
		}
	}
	return float64(served) / float64(max(all, 1))
}
