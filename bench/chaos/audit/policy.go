package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Span is a time during which something was broken.
type Span struct{ From, To time.Time }

// Outage is one at an edge: it was killed, or cut off from the control plane.
type Outage struct {
	Edge string // empty: of all edges
	Span
}

// Skew is a time in which the clock of a part was so many seconds from the true
// time.
type Skew struct {
	Part    string
	Seconds int
	Span
}

// Tolerance is how far clocks may differ with nothing refused that is valid.
const Tolerance = 30 * time.Second

// settling is how long a clock may still be off, and what it led to under way,
// after it was set right.
const settling = 15 * time.Second

// at says whether the clock is off at a time.
func (s Skew) at(t time.Time) bool {
	return !t.Before(s.From) && t.Before(s.To.Add(settling))
}

// Probe is a request that policy forbids.
type Probe struct {
	Edge, What string
	At         time.Time
	Status     int    // 0: no answer
	Code       string // of the error
	Want       int
	WantCode   string
	// Revoked is when the key was revoked, if that was during the run: edges
	// that can hear of it refuse the key a grace later.
	Revoked time.Time
	Expired time.Time // when the credential's time ended; zero: it has no end that matters
}

// early says whether the credential had not ended yet by the edge's clock. Who
// judges by a clock that is wrong is wrong by as much, and no more.
func (p Probe) early(skews []Skew) bool {
	return !p.Expired.IsZero() && slices.ContainsFunc(skews, func(s Skew) bool {
		return s.Part == p.Edge && s.at(p.At) && p.At.Sub(p.Expired) < time.Duration(-s.Seconds)*time.Second+settling
	})
}

// Grace is how long a revocation may take where nothing is broken, unless Seen
// says otherwise.
const Grace = 5 * time.Second

// held says whether the answer is a refusal. An edge that cannot judge says 5xx.
func (p Probe) held() bool {
	return p.Status == 0 || p.Status >= 500 || p.Status == 429 || p.Status == p.Want && p.Code == p.WantCode
}

func policy(seen Seen) Line {
	l := Line{Promise: "no request passes that policy forbids"}
	refused, early := map[string]int{}, 0
	for _, p := range seen.Probes {
		if !p.Revoked.IsZero() {
			continue
		}
		l.Checked++
		switch {
		case p.held():
		case p.early(seen.Skews):
			early++
		default:
			l.breaks("%s: %s was answered %d %s, want %d %s", p.Edge, p.What, p.Status, p.Code, p.Want, p.WantCode)
		}
		refused[p.What]++
	}
	l.Note = plural(len(refused), "kind", "kinds")
	if early > 0 {
		l.Note += fmt.Sprintf("; %d were let through by an edge whose clock was before their end", early)
	}
	return l
}

func revocations(seen Seen) Line {
	grace := cmp.Or(seen.Grace, Grace)
	l := Line{Promise: fmt.Sprintf("a revoked key ends within %.0f s where the edge can hear of it", grace.Seconds())}
	for _, p := range seen.Probes {
		if p.Revoked.IsZero() || p.At.Sub(p.Revoked) < grace || cutOff(seen.Outages, p, grace) {
			continue
		}
		l.Checked++
		if !p.held() {
			l.breaks("%s answered %d to a key that was revoked %v before", p.Edge, p.Status, p.At.Sub(p.Revoked).Round(time.Millisecond))
		}
	}
	return l
}

// cutOff says whether the edge had no quiet grace before the probe in which it
// could have heard of the revocation.
func cutOff(outages []Outage, p Probe, grace time.Duration) bool {
	return slices.ContainsFunc(outages, func(o Outage) bool {
		return (o.Edge == "" || o.Edge == p.Edge) && o.From.Before(p.At) && o.To.Add(grace).After(p.At)
	})
}
