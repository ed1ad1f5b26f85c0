package schedules

import (
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// transition is a change of status asked for by a customer. Only a worker
// completes a schedule.
//
//	from        asked    timing changed   to
//	active      -        no               active, next run kept
//	active      active   no               active, next run kept
//	any         -/active yes              active, next run computed from now (paused stays paused unless asked)
//	paused      active   any              active, next run computed from now: paused time is not missed time
//	completed   active   no               refused, there is no run left
//	completed   -        no               completed
//	completed   paused   any              refused
//	completed   completed                 as if nothing were asked: a schedule that was read is sent back
//	active      paused   any              paused
type transition struct {
	from  string
	asked string // empty: nothing
	next  *time.Time
	timed bool // the timing is another one than before
}

// keepsNext reports whether the next run stays as it is.
func (t transition) keepsNext() bool {
	return !t.timed && (t.asked == "" || t.asked == t.from)
}

// resolve returns the new status and next run. Future computes the first run
// from now, or fails when there is none.
func (t transition) resolve(future func() (time.Time, error)) (string, *time.Time, error) {
	if t.asked == Completed && t.from == Completed {
		t.asked = ""
	}
	switch t.asked {
	case "", Active, Paused:
	default:
		return "", nil, apierror.Invalid([]decision.Detail{{Field: "status", Issue: "cannot be asked for", Expected: "active or paused"}})
	}
	if t.asked == Paused && t.from == Completed {
		return "", nil, apierror.Errorf(decision.Conflict, "A completed schedule cannot be paused.")
	}
	if t.keepsNext() {
		return t.from, t.next, nil
	}
	if t.asked == Paused && !t.timed {
		return Paused, nil, nil
	}
	next, err := future()
	if err != nil {
		return "", nil, err
	}
	if t.asked == Paused || t.asked == "" && t.from == Paused {
		return Paused, nil, nil
	}
	return Active, &next, nil
}
