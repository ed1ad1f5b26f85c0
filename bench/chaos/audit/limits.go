package audit

import "strconv"

// Limited is an answer to a client who asks more often than it may.
type Limited struct {
	Edge       string
	Status     int
	RetryAfter string // the header
}

// window is that of all limits, in seconds.
const window = 60

func limits(seen Seen) Line {
	l := Line{Promise: "who asks too often hears when to come back, within a minute"}
	served := 0
	for _, a := range seen.Limits {
		if a.Status == 200 {
			served++
		}
		if a.Status != 429 {
			continue
		}
		l.Checked++
		if n, err := strconv.Atoi(a.RetryAfter); err != nil || n < 1 || n > window {
			l.breaks("%s said %q", a.Edge, a.RetryAfter)
		}
	}
	l.Note = plural(served, "request", "requests") + " served meanwhile"
	return l
}
