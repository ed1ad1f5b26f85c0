package schedules

import (
	"errors"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// TestTransitions is the table of transition.go: every state, with every
// request.
func TestTransitions(t *testing.T) {
	t.Parallel()
	kept, future := time.Unix(1, 0), time.Unix(2, 0)
	const none = "no future"
	for _, c := range []struct {
		from, asked string
		timed, over bool // over: no run is left
		want        string
		next        *time.Time
	}{
		{Active, "", false, false, Active, &kept},
		{Active, Active, false, false, Active, &kept},
		{Active, "", true, false, Active, &future},
		{Active, Active, true, false, Active, &future},
		{Active, "", true, true, none, nil},
		{Active, Paused, false, false, Paused, nil},
		{Active, Paused, false, true, Paused, nil},
		{Active, Paused, true, false, Paused, nil},
		{Active, Paused, true, true, none, nil},
		{Paused, "", false, false, Paused, nil},
		{Paused, Paused, false, true, Paused, nil},
		{Paused, "", true, false, Paused, nil},
		{Paused, "", true, true, none, nil},
		{Paused, Active, false, false, Active, &future},
		{Paused, Active, true, false, Active, &future},
		{Paused, Active, false, true, none, nil},
		{Completed, "", false, true, Completed, nil},
		{Completed, "", true, false, Active, &future},
		{Completed, Active, true, false, Active, &future},
		{Completed, Active, false, true, none, nil},
		{Completed, Paused, false, true, "conflict", nil},
		{Completed, Completed, false, true, Completed, nil},
		{Completed, Completed, true, false, Active, &future},
		{Paused, Completed, false, false, "invalid_request", nil},
		{Active, Completed, false, false, "invalid_request", nil},
		{Active, "deleted", false, false, "invalid_request", nil},
	} {
		change := transition{from: c.from, asked: c.asked, timed: c.timed}
		if c.from == Active {
			change.next = &kept
		}
		status, next, err := change.resolve(func() (time.Time, error) {
			if c.over {
				return time.Time{}, errors.New(none)
			}
			return future, nil
		})
		if err != nil {
			status = err.Error()
			if code := apierror.Code(err); code != decision.Internal {
				status = string(code)
			}
		}
		if same := (next == nil) == (c.next == nil) && (next == nil || next.Equal(*c.next)); status != c.want || !same {
			t.Errorf("%s, asked %q, timing changed %v: %s %v, want %s %v", c.from, c.asked, c.timed, status, next, c.want, c.next)
		}
	}
}
