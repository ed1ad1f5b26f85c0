package webhooks

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/workers/webhooks/catalogue"
	"sluice.dev/sluice/workers/webhooks/retry"
)

// checker collects every bad field of a request.
type checker struct {
	details []decision.Detail
	groups  []string // of events that may be subscribed to; nil: all
}

// bad notes that something is wrong with field; expected may be empty.
func (c *checker) bad(field, issue, expected string) {
	c.details = append(c.details, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

// create checks all of a creation.
func (c *checker) create(in Create) {
	c.url(in.URL)
	c.events(in.Events)
	c.secret(in.Secret)
	c.description(in.Description)
	c.schedule(in.RetrySchedule)
	c.between("max_concurrency", in.MaxConcurrency, 1, MaxConcurrency)
	c.between("rate_per_second", in.RatePerSecond, 1, MaxRate)
}

// update checks what a change names. The status disabled is the service's own:
// callers can only pause.
func (c *checker) update(in Update) {
	if in.URL != nil {
		c.url(*in.URL)
	}
	if in.Events != nil {
		c.events(*in.Events)
	}
	if in.Description != nil {
		c.description(*in.Description)
	}
	if in.Status != nil && *in.Status != Active && *in.Status != Paused {
		c.bad("status", "cannot be set to this", "active or paused")
	}
	if in.RetrySchedule != nil {
		c.schedule(*in.RetrySchedule)
	}
	c.between("max_concurrency", in.MaxConcurrency, 1, MaxConcurrency)
	c.between("rate_per_second", in.RatePerSecond, 0, MaxRate)
}

// url checks the form only; the guarded client checks where it leads.
func (c *checker) url(url string) {
	switch {
	case url == "":
		c.bad("url", "is missing", "HTTPS URL")
	case len(url) > MaxURL:
		c.bad("url", "is too long", fmt.Sprintf("at most %d bytes", MaxURL))
	case !plain(url):
		c.bad("url", "has characters that are not allowed", "HTTPS URL")
	}
}

// events names each entry that is wrong by its place.
func (c *checker) events(events []string) {
	if len(events) == 0 {
		c.bad("events", "is missing or empty", "array of event names")
	}
	if len(events) > MaxEvents {
		c.bad("events", "has too many entries", fmt.Sprintf("at most %d", MaxEvents))
		return
	}
	for i, e := range events {
		if !catalogue.KnownIn(catalogue.Of(c.groups), e) {
			c.bad(fmt.Sprintf("events[%d]", i), "is not a known event", "a name from GET /v1/webhooks/event-types, or a wildcard such as stream.*")
		} else if slices.Contains(events[:i], e) {
			c.bad(fmt.Sprintf("events[%d]", i), "is given twice", "")
		}
	}
}

// secret checks length and form. It says nothing of how hard to guess it is.
func (c *checker) secret(secret string) {
	want := fmt.Sprintf("%d to %d bytes of text", MinSecret, MaxSecret)
	switch {
	case secret == "":
		c.bad("secret", "is missing", want)
	case len(secret) < MinSecret:
		c.bad("secret", "is too short", want)
	case len(secret) > MaxSecret:
		c.bad("secret", "is too long", want)
	case !plain(secret):
		c.bad("secret", "has characters that are not allowed", want)
	}
}

// description counts characters, not bytes.
func (c *checker) description(d string) {
	if utf8.RuneCountInString(d) > MaxDescription || !plain(d) {
		c.bad("description", "is too long or has control characters", fmt.Sprintf("at most %d characters", MaxDescription))
	}
}

// schedule allows what is at least as patient as the platform's own.
func (c *checker) schedule(seconds []int) {
	if len(seconds) == 0 {
		return
	}
	if len(seconds) < len(retry.Standard) || len(seconds) > MaxRetries {
		c.bad("retry_schedule", "has too few or too many entries", fmt.Sprintf("%d to %d delays in seconds", len(retry.Standard), MaxRetries))
		return
	}
	for i, s := range seconds {
		least := retry.Standard[min(i, len(retry.Standard)-1)]
		if s < int(least/time.Second) || s > int(MaxRetryDelay/time.Second) {
			c.bad(fmt.Sprintf("retry_schedule[%d]", i), "is out of range", fmt.Sprintf("%d to %d seconds", int(least.Seconds()), int(MaxRetryDelay.Seconds())))
		}
	}
}

// between checks a number that may be absent.
func (c *checker) between(field string, v *int, low, high int) {
	if v != nil && (*v < low || *v > high) {
		c.bad(field, "is out of range", fmt.Sprintf("%d to %d", low, high))
	}
}

// plain says whether s is valid UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), func(r rune) bool { return r < ' ' || r == 0x7f })
}
