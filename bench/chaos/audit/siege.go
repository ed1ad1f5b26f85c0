package audit

import (
	"fmt"
	"slices"
	"time"
)

// Siege is what others saw of the platform while all was quiet, and then beside a
// tenant that pays attention to no limit.
type Siege struct {
	Kinds    []Beside
	Attempts int            // of the hostile tenant
	Starts   map[string]int // processes that were started again meanwhile, by name
}

// Beside is how late things of one kind were.
type Beside struct {
	What         string
	Quiet, Beset []time.Duration
	Failed       int // of those beside the hostile tenant
}

// What beside a hostile tenant may take as long as twice the same in quiet, and
// this. A machine that does other things too has more.
const (
	slack     = 500 * time.Millisecond
	busySlack = 5 * time.Second
)

// Fair judges a siege; busy is as in Seen.
func Fair(s Siege, busy bool) Line {
	l := Line{Promise: "a tenant who pays attention to no limit slows nobody else"}
	more := slack
	if busy {
		more = busySlack
	}
	worst := 0.0
	for _, k := range s.Kinds {
		l.Checked += len(k.Beset)
		quiet, beset := ninety(k.Quiet), ninety(k.Beset)
		if beset > 2*quiet+more {
			l.breaks("%s took %v (nine of ten took less), in quiet %v", k.What, beset.Round(time.Millisecond), quiet.Round(time.Millisecond))
		}
		if len(k.Quiet) == 0 || len(k.Beset) == 0 {
			l.breaks("%s: nothing was measured", k.What)
		} else {
			worst = max(worst, float64(beset)/float64(max(quiet, 1)))
		}
		if k.Failed > 0 {
			l.breaks("%s: %d of %d failed", k.What, k.Failed, len(k.Beset))
		}
	}
	for name, n := range s.Starts {
		if n > 0 {
			l.breaks("%s was started again %d times", name, n)
		}
	}
	if s.Attempts == 0 {
		l.breaks("the hostile tenant did nothing")
	}
	l.Note = fmt.Sprintf("beside %d attempts at most %.1f times as late as in quiet", s.Attempts, worst)
	return l
}

// ninety is the time below which nine of ten lie.
func ninety(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)*9/10]
}
