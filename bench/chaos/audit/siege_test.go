package audit

import (
	"testing"
	"time"
)

func TestWhoIsSlowedByAHostileTenant(t *testing.T) {
	t.Parallel()
	times := func(each time.Duration) (all []time.Duration) {
		for range 20 {
			all = append(all, each)
		}
		return all
	}
	good := func() Siege {
		return Siege{Attempts: 100, Starts: map[string]int{"worker-1": 0},
			Kinds: []Beside{{What: "sign-in", Quiet: times(100 * time.Millisecond), Beset: append(times(600*time.Millisecond), time.Minute)}}}
	}
	for name, c := range map[string]struct {
		change func(*Siege)
		busy   bool
		broken int
	}{
		"nobody":                       {func(*Siege) {}, false, 0},
		"somebody, by more than twice": {func(s *Siege) { s.Kinds[0].Beset = times(701 * time.Millisecond) }, false, 1},
		"on a busy machine":            {func(s *Siege) { s.Kinds[0].Beset = times(701 * time.Millisecond) }, true, 0},
		"by seconds":                   {func(s *Siege) { s.Kinds[0].Beset = times(6 * time.Second) }, true, 1},
		"somebody who was refused":     {func(s *Siege) { s.Kinds[0].Failed = 1 }, true, 1},
		"a process":                    {func(s *Siege) { s.Starts["media"] = 1 }, true, 1},
		"nothing was measured":         {func(s *Siege) { s.Kinds[0].Beset = nil }, false, 1},
		"nothing was done":             {func(s *Siege) { s.Attempts = 0 }, false, 1},
	} {
		s := good()
		c.change(&s)
		if l := Fair(s, c.busy); len(l.Broken) != c.broken || l.Note == "" {
			t.Errorf("%s: %v", name, l.Broken)
		}
	}
}
