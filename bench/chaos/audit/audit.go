// Package audit is the accountant of a run under fire: it compares what clients
// saw with what is stored, and says which promise of the platform was broken. It
// knows values only, so that each promise can be tested by breaking it on paper.
package audit

import (
	"fmt"
	"time"
)

// Seen is what clients, receivers and probers saw.
type Seen struct {
	Writes    []Write
	Hooks     []Hook
	Since     time.Time // of events after it, all must have reached the receiver
	Schedules []Schedule
	Calls     []Call
	Payments  []Payment
	Price     int64 // of one payment, in the token's smallest units
	Funds     int64 // that each payer was given
	Meters    []Meter
	Tokens    Meter // of chat completions
	Chats     []Chat
	Probes    []Probe
	Outages   []Outage
	Skews     []Skew
	Grace     time.Duration // of revocations; 0: Grace
	Configs   []Config
	Finals    []Final
	Tries     []Try
	Faults    []Struck
	Limits    []Limited
	Busy      bool // the machine does other things too: errors in calm are not the platform's
}

// Stored is what the database holds once all has come to rest.
type Stored struct {
	Things     []Thing
	Events     []Event
	Executions []Execution
	Payments   []Settled
	Usage      map[string]int64 // requests by the id of a key
	Tokens     int64
	Configs    map[int64]bool // versions of the configuration
}

// Line is the verdict on one promise.
type Line struct {
	Promise string
	Checked int      // how many cases
	Broken  []string // one sentence for each violation
	Note    string   // what else should be known; may be empty
}

// breaks notes a violation.
func (l *Line) breaks(format string, args ...any) {
	l.Broken = append(l.Broken, fmt.Sprintf(format, args...))
}

// Audit checks every promise. The order of lines is fixed.
func Audit(seen Seen, stored Stored) []Line {
	return []Line{
		acceptedWrites(seen, stored),
		repeatedWrites(seen, stored),
		deletions(seen, stored),
		webhooks(seen, stored),
		bodies(seen, stored),
		dueRuns(seen, stored),
		punctual(seen, stored),
		endedRuns(seen, stored),
		grants(seen),
		money(seen, stored),
		meters(seen, stored),
		tokens(seen, stored),
		chats(seen),
		policy(seen),
		revocations(seen),
		configurations(seen, stored),
		valid(seen),
		quiet(seen),
		limits(seen),
		finals(seen),
	}
}

// Broken counts violations.
func Broken(lines []Line) int {
	n := 0
	for _, l := range lines {
		n += len(l.Broken)
	}
	return n
}
