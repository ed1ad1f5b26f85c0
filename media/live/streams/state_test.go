package streams

import "testing"

func TestWhatEachActionDoesInEachState(t *testing.T) {
	t.Parallel()
	const refused = Status("")
	table := map[Status]map[Action]Status{
		Idle:     {Start: Starting, Stop: Idle, Pause: refused, Resume: refused},
		Starting: {Start: Starting, Stop: Ended, Pause: refused, Resume: refused},
		Live:     {Start: Live, Stop: Ended, Pause: Paused, Resume: Live},
		Paused:   {Start: Live, Stop: Ended, Pause: Paused, Resume: Live},
		Ended:    {Start: Starting, Stop: Ended, Pause: refused, Resume: refused},
	}
	for from, row := range table {
		for action, want := range row {
			got, ok := Next(from, action)
			if !ok {
				got = refused
			}
			if got != want {
				t.Errorf("%s in %s: %q, want %q", action, from, got, want)
			}
		}
		if _, ok := Next(from, "explode"); ok {
			t.Errorf("an unknown action is taken in %s", from)
		}
	}
}

func TestActionsHaveAPast(t *testing.T) {
	t.Parallel()
	for action, want := range map[Action]string{Start: "started", Stop: "stopped", Pause: "paused", Resume: "resumed"} {
		if action.Past() != want {
			t.Errorf("%s: %s", action, action.Past())
		}
	}
}
