package audit

import (
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

// Probe is a request that policy forbids.
type Probe struct {
	Edge, What string
	At         time.Time
	Status     int    // 0: no answer
	Code       string // of the error
	Want       int
	WantCode   string
	// Revoked is when the key was revoked, if that was during the run: edges
	// that can hear of it refuse the key Grace later.
	Revoked time.Time
}

// Grace is how long a revocation may take where nothing is broken.
const Grace = 5 * time.Second

// held says whether the answer is a refusal. An edge that cannot judge says 5xx.
func (p Probe) held() bool {
	return p.Status == 0 || p.Status >= 500 || p.Status == 429 || p.Status == p.Want && p.Code == p.WantCode
}

func policy(seen Seen) Line {
	l := Line{Promise: "no request passes that policy forbids"}
	refused := map[string]int{}
	for _, p := range seen.Probes {
		if !p.Revoked.IsZero() {
			continue
		}
		l.Checked++
		if !p.held() {
			l.breaks("%s: %s was answered %d %s, want %d %s", p.Edge, p.What, p.Status, p.Code, p.Want, p.WantCode)
		}
		refused[p.What]++
	}
	l.Note = counts(refused)
	return l
}

func revocations(seen Seen) Line {
	l := Line{Promise: "a revoked key ends within 5 s where the edge can hear of it"}
	for _, p := range seen.Probes {
		if p.Revoked.IsZero() || p.At.Sub(p.Revoked) < Grace || cutOff(seen.Outages, p) {
			continue
		}
		l.Checked++
		if !p.held() {
			l.breaks("%s answered %d to a key that was revoked %v before", p.Edge, p.Status, p.At.Sub(p.Revoked).Round(time.Millisecond))
		}
	}
	return l
}

// cutOff says whether the edge had no quiet Grace before the probe in which it
// could have heard of the revocation.
func cutOff(outages []Outage, p Probe) bool {
	return slices.ContainsFunc(outages, func(o Outage) bool {
		return (o.Edge == "" || o.Edge == p.Edge) && o.From.Before(p.At) && o.To.Add(Grace).After(p.At)
	})
}
