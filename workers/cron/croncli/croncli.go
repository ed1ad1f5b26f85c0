// Package croncli previews cron expressions for people and for table checks: it is
// `sluice cron next` without its flags.
package croncli

import (
	"fmt"
	"io"
	"time"

	"sluice.dev/sluice/workers/cron"
)

// Exit statuses of both functions.
const (
	exitOK    = 0
	exitIO    = 1 // the output could not be written, or the input not read
	exitUsage = 2 // a bad expression, zone, time or count
)

// MaxRuns is the most runs one preview prints.
const MaxRuns = 1000

// Preview is one request for upcoming runs.
type Preview struct {
	Expr  string
	Zone  string // IANA name; empty means UTC
	From  string // RFC 3339; the first run is strictly after it; empty means now
	Count int    // runs to print, 1–MaxRuns
}

// Next prints the next runs to out, one UTC RFC 3339 time a line, and returns
// the exit status. What is wrong with the request goes to errs as one line, and
// the status is then 2.
func Next(p Preview, now time.Time, out, errs io.Writer) int {
	lines, err := upcoming(p, now)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "sluice cron next:", err)
		return exitUsage
	}
	for _, at := range lines {
		if _, err := fmt.Fprintln(out, format(at)); err != nil {
			return exitIO
		}
	}
	return exitOK
}

// upcoming computes the runs of a preview. Fewer than asked for come back only
// when time runs out in the year 9999.
func upcoming(p Preview, now time.Time) ([]time.Time, error) {
	if p.Count < 1 || p.Count > MaxRuns {
		return nil, fmt.Errorf("the number of runs must be 1–%d", MaxRuns)
	}
	schedule, err := cron.Parse(p.Expr)
	if err != nil {
		return nil, err
	}
	from := now
	if p.From != "" {
		if from, err = time.Parse(time.RFC3339, p.From); err != nil {
			return nil, fmt.Errorf("from: %q is not an RFC 3339 time", p.From)
		}
	}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	loc, err := cron.LoadZone(p.Zone)
	if err != nil {
		return nil, err
	}
	return schedule.Upcoming(from, loc, p.Count), nil
}

func format(at time.Time) string { return at.UTC().Format(time.RFC3339) }
