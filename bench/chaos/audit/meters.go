package audit

import (
	"slices"
	"time"
)

// Meter is what should have been counted under one key.
type Meter struct {
	Name, Key  string
	Answered   int64 // whole answers
	Unanswered int64 // began and had none: counted or not
	AtRisk     int64 // of the answered: may be lost, see AtRisk
}

// within says whether n lies in the bound.
func (m Meter) within(n int64) bool {
	return n >= m.Answered-m.AtRisk && n <= m.Answered+m.Unanswered
}

func meters(seen Seen, stored Stored) Line {
	l := Line{Promise: "meters equal requests within the stated bound"}
	risk := int64(0)
	for _, m := range seen.Meters {
		l.Checked += int(m.Answered)
		risk += m.AtRisk
		if n := stored.Usage[m.Key]; !m.within(n) {
			l.breaks("%s counted %d requests; %d were answered, %d of them at risk, and %d were not", m.Name, n, m.Answered, m.AtRisk, m.Unanswered)
		}
	}
	l.Note = plural(int(risk), "request", "requests") + " might be lost with a killed Envoy"
	return l
}

func tokens(seen Seen, stored Stored) Line {
	l := Line{Promise: "tokens of completions are recorded", Checked: int(seen.Tokens.Answered)}
	if !seen.Tokens.within(stored.Tokens) {
		l.breaks("%d tokens are recorded; clients saw %d, %d of them at risk, and %d in answers that broke off",
			stored.Tokens, seen.Tokens.Answered, seen.Tokens.AtRisk, seen.Tokens.Unanswered)
	}
	return l
}

// AtRisk counts the requests that a process may have taken with it when it was
// killed: those answered within delay before a kill, and those since the start
// of an outage in which nothing could be handed on, if it was killed in it or
// within delay after.
func AtRisk(answered, kills []time.Time, outages []Span, delay time.Duration) int64 {
	n := int64(0)
	for _, at := range answered {
		if slices.ContainsFunc(kills, func(kill time.Time) bool {
			from := kill.Add(-delay)
			for _, o := range merged(outages, delay) {
				if o.From.Before(from) && o.To.Add(delay).After(from) {
					from = o.From
				}
			}
			return !at.Before(from) && !at.After(kill.Add(delay))
		}) {
			n++
		}
	}
	return n
}

// merged joins spans that are less than gap apart.
func merged(spans []Span, gap time.Duration) []Span {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return a.From.Compare(b.From) })
	var all []Span
	for _, s := range spans {
		if n := len(all); n > 0 && s.From.Sub(all[n-1].To) < gap {
			if s.To.After(all[n-1].To) {
				all[n-1].To = s.To
			}
			continue
		}
		all = append(all, s)
	}
	return all
}
