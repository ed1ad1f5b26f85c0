package plan

import "time"

// The catch-up policies: what becomes of runs that were due while no worker was
// there.
const (
	CatchUpSkip = "skip" // none of them
	CatchUpLast = "last" // the latest one
	CatchUpAll  = "all"  // each, one after the other, up to a limit
)

// The overlap policies: what becomes of a run that is due while an earlier one
// has not ended.
const (
	OverlapSkip  = "skip"
	OverlapQueue = "queue"
	OverlapAllow = "allow"
)

// Policy is how a schedule treats runs that are late or overlap.
type Policy struct {
	CatchUp    string
	MaxCatchUp int // for CatchUpAll: the most runs that are caught up on
	Overlap    string
}

const (
	// Grace is how late a run may be and still count as on time: a restart of
	// workers or database is no downtime.
	Grace = time.Minute
	// MaxWaiting is how many runs of one schedule may wait behind another.
	MaxWaiting = 100
	// MaxRunning is how many runs of one schedule may be under way at once, where
	// they may overlap.
	MaxRunning = 100
)

// Fate is what becomes of a run.
type Fate int

// The fates of a run.
const (
	Start Fate = iota // now
	Wait              // until the runs before it have ended
	Skip              // never; recorded with its Note
)

// Run is one due run and what becomes of it.
type Run struct {
	At   time.Time
	Fate Fate
	Note string // why it is skipped, or what went missing before it; may be empty
}

// The notes that runs carry.
const (
	NoteMissed  = "missed: no worker was running when it was due"
	NoteOverlap = "skipped: the run before it has not ended"
	NoteFull    = "skipped: too many runs are waiting already"
	NoteRunning = "skipped: too many runs have not ended"
	NoteEarlier = "earlier runs were missed and are not caught up on"
)

// Busy is what goes on with a schedule already.
type Busy struct {
	Executing bool
	Waiting   int
	Running   int // how many are executing
}

// Decide returns what becomes of the runs due from first to now. It is never
// empty, and never longer than the catch-up limit and one.
func Decide(p Plan, policy Policy, first, now time.Time, busy Busy) []Run {
	runs := caughtUp(p, policy, first, now)
	batch := policy.CatchUp == CatchUpAll && len(runs) > 1
	for i := range runs {
		if runs[i].Fate == Skip {
			continue
		}
		runs[i].Fate, runs[i].Note = overlap(policy.Overlap, batch, busy, runs[i].Note)
		switch runs[i].Fate {
		case Start:
			busy.Executing = true
			busy.Running++
		case Wait:
			busy.Waiting++
		}
	}
	return runs
}

// caughtUp applies the catch-up policy: what it returns is to be started, if
// overlap allows, or skipped.
func caughtUp(p Plan, policy Policy, first, now time.Time) []Run {
	limit := 1
	switch policy.CatchUp {
	case CatchUpAll:
		limit = max(1, policy.MaxCatchUp)
	case CatchUpSkip:
		limit = 2 // a minute's grace holds no more than two runs of a cron expression
	}
	due, more := p.Due(first, now, limit)
	runs := make([]Run, len(due))
	for i, at := range due {
		runs[i] = Run{At: at}
		if policy.CatchUp == CatchUpSkip && now.Sub(at) > Grace {
			runs[i] = Run{At: at, Fate: Skip, Note: NoteMissed}
		}
	}
	if more && runs[0].Fate != Skip {
		runs[0].Note = NoteEarlier
	}
	if policy.CatchUp == CatchUpSkip && len(runs) == 2 && runs[1].Fate == Skip {
		runs = runs[1:] // one record stands for all that was missed
	}
	return runs
}

// overlap applies the overlap policy to one run. Runs that are caught up on
// together wait for each other rather than skip.
func overlap(policy string, batch bool, busy Busy, note string) (Fate, string) {
	switch {
	case policy == OverlapAllow && busy.Running >= MaxRunning:
		return Skip, NoteRunning
	case policy == OverlapAllow, !busy.Executing && busy.Waiting == 0:
		return Start, note
	case policy == OverlapSkip && !batch:
		return Skip, NoteOverlap
	case busy.Waiting >= MaxWaiting:
		return Skip, NoteFull
	}
	return Wait, note
}
