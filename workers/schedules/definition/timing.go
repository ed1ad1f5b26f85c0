package definition

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/cron"
	"sluice.dev/sluice/workers/schedules/plan"
)

// Future returns the first run after now. Without one the error names the field
// to change.
func (t Timing) Future(p plan.Plan, now time.Time) (time.Time, error) {
	next, ok := p.Next(now)
	if ok {
		return next, nil
	}
	detail := decision.Detail{Field: "schedule.endDate", Issue: "leaves no run in the future", Expected: "a later date"}
	if t.Type == OneTime {
		detail = decision.Detail{Field: "schedule.executeAt", Issue: "is in the past", Expected: "a time in the future"}
	}
	return time.Time{}, apierror.Invalid([]decision.Detail{detail})
}

// Same reports whether two timings have the same runs.
func (t Timing) Same(other Timing) bool {
	return t.Type == other.Type && t.Cron == other.Cron && t.Timezone == other.Timezone &&
		t.StartDate == other.StartDate && t.EndDate == other.EndDate && t.ExecuteAt == other.ExecuteAt
}

// Plan returns the plan of a timing that has been checked before.
func (t Timing) Plan() (plan.Plan, error) {
	var c check
	p := c.timing(t)
	return p, apierror.Invalid(c.details)
}

// timing checks the schedule object and builds its plan, which is of use only
// if nothing was found.
func (c *check) timing(t Timing) plan.Plan {
	loc, err := cron.LoadZone(t.Timezone)
	if err != nil {
		c.add("schedule.timezone", "is not a known time zone", "an IANA name, such as Europe/Berlin")
		loc = time.UTC
	}
	c.oneOf("schedule.type", t.Type, Recurring, OneTime)
	switch t.Type {
	case OneTime:
		c.unused("cron", t.Cron, OneTime)
		c.unused("startDate", t.StartDate, OneTime)
		c.unused("endDate", t.EndDate, OneTime)
		return plan.Once(c.instant("schedule.executeAt", t.ExecuteAt, loc))
	case Recurring:
		c.unused("executeAt", t.ExecuteAt, Recurring)
		return c.recurring(t, loc)
	}
	return plan.Plan{}
}

func (c *check) unused(field, value, kind string) {
	if value != "" {
		c.add("schedule."+field, "does not belong to a "+kind+" schedule", "")
	}
}

func (c *check) recurring(t Timing, loc *time.Location) plan.Plan {
	expr := c.cron(t.Cron)
	start := c.date("schedule.startDate", t.StartDate, loc, false)
	end := c.date("schedule.endDate", t.EndDate, loc, true)
	if !start.IsZero() && !end.IsZero() && end.Before(start) {
		c.add("schedule.endDate", "is before startDate", "")
	}
	return plan.Recurring(expr, loc, start, end)
}

func (c *check) cron(text string) cron.Schedule {
	if text == "" {
		c.add("schedule.cron", "is missing", "a cron expression of five fields")
		return cron.Schedule{}
	}
	expr, err := cron.Parse(text)
	if bad, ok := errors.AsType[*cron.Error](err); ok {
		issue := bad.Problem
		if bad.Field != "" {
			issue = bad.Field + ": " + issue
		}
		c.add("schedule.cron", issue, "minute, hour, day of month, month, day of week")
	}
	return expr
}

// instant reads a time with an offset, or a local one.
func (c *check) instant(field, text string, loc *time.Location) time.Time {
	if text == "" {
		c.add(field, "is missing", "an ISO 8601 timestamp")
		return time.Time{}
	}
	at, ok := parseTime(text, loc)
	if !ok {
		c.add(field, "is not a timestamp", "ISO 8601, such as 2026-03-01T09:00:00Z")
	}
	return at
}

// date reads an optional bound. A bare date as the end means its last second.
func (c *check) date(field, text string, loc *time.Location, end bool) time.Time {
	if text == "" {
		return time.Time{}
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, loc); err == nil && saneYear(day) {
		if end {
			return day.AddDate(0, 0, 1).Add(-time.Second)
		}
		return day
	}
	at, ok := parseTime(text, loc)
	if !ok {
		c.add(field, "is not a date", "YYYY-MM-DD or an ISO 8601 timestamp")
	}
	return at
}

// parseTime reads RFC 3339 with or without an offset; without one it is a time
// on the zone's clock.
func parseTime(text string, loc *time.Location) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02T15:04:05", text, loc)
	}
	if err != nil || !saneYear(at) {
		return time.Time{}, false
	}
	return at.UTC().Truncate(time.Microsecond), true // as precise as the database
}

// saneYear keeps times within what the database and RFC 3339 can hold, zone
// offsets included.
func saneYear(at time.Time) bool { return at.Year() >= 1970 && at.Year() < 9999 }

func join(words []string) string { return strings.Join(words, ", ") }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
